/* The files of who may call what: the server's tokens, the rules; what they
 * mean, and what is wrong with a bad one. */
#include "support.h"

#include "allow_rules.h"
#include "files.h"
#include "kept_file.h"
#include "tempdir.h"
#include "token_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SHA-256 of "open sesame" and of "xyzzy". */
#define SESAME                                                                 \
    "sha256:41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb"
#define XYZZY                                                                  \
    "sha256:184858A00FD7971F810848266EBCECEE5E8B69972C5FFAED622F5EE078671AED"

static enum idem_status
read_as(const struct kept_file_ops *ops, const char *text, void **meaning,
        struct idem_error *err)
{
    return ops->read(meaning, "FILE", idem_bytes_of(text), err);
}

static void
assert_bad(const struct kept_file_ops *ops, const char *text, const char *why)
{
    struct idem_error err = {0};
    void *meaning;

    assert_int_equal(read_as(ops, text, &meaning, &err), IDEM_INVALID_ARGUMENT);
    if (!strstr(err.message, why))
        fail_msg("\"%s\" is not in: %s", why, err.message);
    assert_int_equal(strncmp(err.message, "FILE: ", 6), 0);
}

/* --- Tokens --- */

static void
assert_is(const struct token_table *table, const char *token,
          const char *identity, unsigned n_roles)
{
    const struct token_entry *entry =
        token_table_find(table, idem_bytes_of(token));

    assert_non_null(entry);
    assert_true(idem_bytes_equal(entry->identity, idem_bytes_of(identity)));
    assert_int_equal(entry->n_roles, n_roles);
}

static void
tokens_are_known_by_their_hash(void **state)
{
    struct token_table *table;
    struct idem_error err = {0};
    void *meaning;

    (void)state;
    assert_int_equal(read_as(&token_table_ops,
                             "# who calls\n\n  svc:teller " SESAME
                             " clerk,boss\r\n\tmagician\t" XYZZY,
                             &meaning, &err),
                     IDEM_OK);
    table = meaning;
    assert_is(table, "open sesame", "svc:teller", 2);
    assert_is(table, "xyzzy", "magician", 0);
    assert_null(token_table_find(table, idem_bytes_of("open sesam")));
    assert_null(token_table_find(table, idem_bytes_of("")));
    token_table_ops.free(table);
}

static void
an_empty_file_knows_nobody(void **state)
{
    struct idem_error err = {0};
    void *meaning;

    (void)state;
    assert_int_equal(read_as(&token_table_ops, "#\n", &meaning, &err), IDEM_OK);
    assert_null(token_table_find(meaning, idem_bytes_of("xyzzy")));
    token_table_ops.free(meaning);
}

static void
a_bad_token_file_is_refused_with_its_line(void **state)
{
    const struct kept_file_ops *ops = &token_table_ops;
    char text[1024];

    (void)state;
    assert_bad(ops, "svc", "line 1: after the identity comes sha256:");
    assert_bad(ops, "\nsvc open-sesame", "line 2: after the identity comes");
    assert_bad(ops, "svc sha256:41ef", "line 1: after the identity comes");
    assert_bad(ops, "svc " SESAME "0", "line 1: after the identity comes");
    assert_bad(ops, "svc " SESAME " a,,b", "line 1: a role is empty");
    assert_bad(ops, "svc " SESAME " a b", "line 1: after the roles comes");
    assert_bad(ops, "s\x7f " SESAME, "line 1: the identity is over 255");
    assert_bad(ops, "a " SESAME "\nb " SESAME, "have the same token");
    snprintf(text, sizeof text, "%0256d " SESAME, 7);
    assert_bad(ops, text, "line 1: the identity is over 255");
    snprintf(text, sizeof text, "svc " SESAME " a");
    for (unsigned i = 0; i < IDEM_ROLES_MAX; i++)
        strcat(text, ",b");
    assert_bad(ops, text, "line 1: over 64 roles");
}

/* --- Rules --- */

static bool
lets_in(const struct allow_rules *rules, const char *method,
        const char *identity, const char *role)
{
    const struct idem_bytes roles[] = {idem_bytes_of(role ? role : "")};
    const struct idem_principal principal = {
        .identity = idem_bytes_of(identity ? identity : ""),
        .roles = roles,
        .n_roles = role ? 1 : 0};
    const struct idem_allow *allow = allow_rules_find(rules, method);

    assert_non_null(allow);
    return allow_lets_in(allow, identity ? &principal : NULL);
}

static void
one_word_of_a_rule_suffices(void **state)
{
    struct idem_error err = {0};
    void *r;

    (void)state;
    assert_int_equal(read_as(&allow_rules_ops,
                             "p.S known\n"
                             "p.S/A anyone\n"
                             "p.S/B svc:till spiffe://shop/* role:clerk\n"
                             "p.S/C nobody\n",
                             &r, &err),
                     IDEM_OK);
    assert_true(lets_in(r, "p.S/A", NULL, NULL));
    assert_false(lets_in(r, "p.S/B", NULL, NULL));
    assert_true(lets_in(r, "p.S/B", "svc:till", NULL));
    assert_false(lets_in(r, "p.S/B", "svc:till2", NULL));
    assert_false(lets_in(r, "p.S/B", "svc:til", NULL));
    assert_true(lets_in(r, "p.S/B", "spiffe://shop/", NULL));
    assert_true(lets_in(r, "p.S/B", "spiffe://shop/x", NULL));
    assert_false(lets_in(r, "p.S/B", "spiffe://shop", NULL));
    assert_true(lets_in(r, "p.S/B", "x", "clerk"));
    assert_false(lets_in(r, "p.S/B", "clerk", "svc:till"));
    assert_false(lets_in(r, "p.S/C", "svc:till", "clerk"));
    assert_true(lets_in(r, "p.S/D", "x", NULL)); /* the service's */
    assert_false(lets_in(r, "p.S/D", NULL, NULL));
    assert_null(allow_rules_find(r, "p.S2/A"));
    assert_null(allow_rules_find(r, "p.T/A"));
    allow_rules_ops.free(r);
}

static void
a_bad_rules_file_is_refused_with_its_line(void **state)
{
    const struct kept_file_ops *ops = &allow_rules_ops;

    (void)state;
    assert_bad(ops, "p.S", "line 1: says nobody who may");
    assert_bad(ops, "p.S known\np.S known", "line 2: has a rule already");
    assert_bad(ops, "p.S nobody known", "line 1: nobody stands alone");
    assert_bad(ops, "p.S *", "line 1: \"*\" is everybody who is known");
    assert_bad(ops, "p.S a*b", "line 1: a * stands at the end");
    assert_bad(ops, "p.S role:", "line 1: after role: comes a role");
    assert_bad(ops, "p.S role:a*", "line 1: after role: comes a role");
    assert_bad(ops, "p.S \x7f", "line 1: an identity is over 255");
}

/* --- Files that change --- */

struct told {
    pthread_mutex_t lock;
    pthread_cond_t change;
    unsigned good, bad;
    char trouble[IDEM_MESSAGE_MAX];
};

static void
note(void *with, const char *file, const struct idem_error *err)
{
    struct told *told = with;

    (void)file;
    pthread_mutex_lock(&told->lock);
    if (err)
        snprintf(told->trouble, sizeof told->trouble, "%s", err->message);
    if (err)
        told->bad++;
    else
        told->good++;
    pthread_cond_broadcast(&told->change);
    pthread_mutex_unlock(&told->lock);
}

static void
await(struct told *told, unsigned good, unsigned bad)
{
    pthread_mutex_lock(&told->lock);
    while (told->good < good || told->bad < bad)
        pthread_cond_wait(&told->change, &told->lock);
    pthread_mutex_unlock(&told->lock);
}

static bool
knows(struct kept_file *file, const char *token)
{
    struct kept *kept = kept_file_hold(file);
    bool known = token_table_find(kept->meaning, idem_bytes_of(token)) != NULL;

    kept_release(kept);
    return known;
}

static void
a_file_that_changes_is_read_again_and_a_bad_one_changes_nothing(void **state)
{
    struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .change = PTHREAD_COND_INITIALIZER};
    struct kept_file *file;
    struct kept *before;
    struct tempdir dir;
    struct idem_error err;
    char path[128];

    (void)state;
    tempdir_open(&dir);
    file_put(tempdir_file(&dir, "tokens", path, sizeof path), "a " SESAME);
    assert_int_equal(
        kept_file_new(&file, path, &token_table_ops, note, &told, &err),
        IDEM_OK);
    assert_true(knows(file, "open sesame"));
    before = kept_file_hold(file);
    file_put(path, "a " XYZZY);
    await(&told, 1, 0);
    assert_false(knows(file, "open sesame"));
    assert_true(knows(file, "xyzzy"));
    /* who holds what it meant keeps it */
    assert_non_null(
        token_table_find(before->meaning, idem_bytes_of("open sesame")));
    kept_release(before);
    file_put(path, "a b");
    await(&told, 1, 1);
    assert_non_null(strstr(told.trouble, "line 1"));
    assert_true(knows(file, "xyzzy"));
    kept_file_free(file);
    tempdir_close(&dir);
}

static void
a_file_that_is_missing_or_too_large_is_named(void **state)
{
    const struct kept_file_ops small = {.max_size = 4};
    struct kept_file *file;
    struct tempdir dir;
    struct idem_error err;
    char path[128];

    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "tokens", path, sizeof path);
    assert_int_equal(
        kept_file_new(&file, path, &token_table_ops, NULL, NULL, &err),
        IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "tokens: No such file"));
    file_put(path, "12345");
    assert_int_equal(kept_file_new(&file, path, &small, NULL, NULL, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "tokens: over 4 bytes"));
    tempdir_close(&dir);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_known_by_their_hash),
        cmocka_unit_test(an_empty_file_knows_nobody),
        cmocka_unit_test(a_bad_token_file_is_refused_with_its_line),
        cmocka_unit_test(one_word_of_a_rule_suffices),
        cmocka_unit_test(a_bad_rules_file_is_refused_with_its_line),
        cmocka_unit_test(
            a_file_that_changes_is_read_again_and_a_bad_one_changes_nothing),
        cmocka_unit_test(a_file_that_is_missing_or_too_large_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
