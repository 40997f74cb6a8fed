#include "support.h"

#include "redis.h"
#include "shield_world.h"

#include <idem/digest.h>
#include <idem/key.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shield in front of a real Redis: which entries are answers. */

static struct redis *redis;

static int
start(void **state)
{
    (void)state;
    redis = redis_start(NULL);
    return 0;
}

static int
stop(void **state)
{
    (void)state;
    redis_free(redis);
    redis = NULL;
    return 0;
}

static struct idem_shield *
open_connected(struct idem_redis_options options)
{
    options.url = options.url ? options.url : redis_url(redis);
    return shield_open_connected(options);
}

static void
say(const char *command)
{
    char reply[256];

    redis_say(redis, command, reply, sizeof(reply));
    if (reply[0] == '-')
        fail_msg("%s: %s", command, reply);
}

static void
assert_keyspace_has(const char *text)
{
    char reply[1024];

    redis_say(redis, "INFO keyspace", reply, sizeof(reply));
    if (!strstr(reply, text))
        fail_msg("%s is not in %s", text, reply);
}

static void
a_recorded_answer_is_found_and_is_the_same(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});
    struct idem_shield_counts before;

    (void)state;
    for (unsigned n = 0; n < 20; n++)
        shield_learn_for_sure(shield, n);
    before = shield_counts(shield);
    for (unsigned n = 0; n < 20; n++)
        assert_int_equal(shield_ask(shield, n), IDEM_VERDICT_DONE);
    assert_int_equal(shield_counts(shield).hits - before.hits, 20);
    assert_int_equal(shield_counts(shield).rejected, 0);
    assert_int_equal(shield_counts(shield).failed, 0);
    idem_shield_free(shield);
}

static void
what_was_never_recorded_is_absent(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});
    uint64_t before = shield_counts(shield).misses;

    (void)state;
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(shield).misses, before + 1);
    idem_shield_free(shield);
}

static void
the_key_of_another_request_is_reused(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});

    (void)state;
    shield_learn_for_sure(shield, 3);
    assert_int_equal(shield_ask_otherwise(shield, 3), IDEM_VERDICT_REUSED);
    assert_int_equal(shield_ask(shield, 3), IDEM_VERDICT_DONE);
    idem_shield_free(shield);
}

/* Fault 35, and a promoted or restored authority. */
static void
entries_of_another_epoch_are_rejected(void **state)
{
    struct idem_shield *old = open_connected((struct idem_redis_options){0});
    struct idem_shield *new =
        open_connected((struct idem_redis_options){.epoch = "7:2:1"});

    (void)state;
    shield_learn_for_sure(old, 1);
    assert_int_equal(shield_ask(new, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(new).rejected, 1);
    assert_int_equal(shield_ask(old, 1), IDEM_VERDICT_DONE);
    idem_shield_free(old);
    idem_shield_free(new);
}

static struct idem_shield *
open_with_secret(const char *secret)
{
    const struct idem_redis_options options = {
        .url = redis_url(redis),
        .budget_ms = 5000,
        .secret = idem_bytes_of(secret),
    };
    struct idem_shield *shield;

    assert_int_equal(idem_redis_new(&shield, &options, NULL), IDEM_OK);
    return shield;
}

static void
without_a_known_epoch_there_are_no_hits(void **state)
{
    struct idem_shield *shield = open_with_secret("a secret of tests");

    (void)state;
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    idem_shield_set_epoch(shield, "7:1:1");
    shield_await_connected(shield);
    shield_learn_for_sure(shield, 1);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);

    idem_shield_set_epoch(shield, "");
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    idem_shield_set_epoch(shield, "7:2:1");
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    idem_shield_set_epoch(shield, "7:1:1");
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    idem_shield_free(shield);
}

static void
entries_of_another_secret_are_rejected(void **state)
{
    struct idem_shield *ours = open_connected((struct idem_redis_options){0});
    struct idem_shield *theirs = open_with_secret("another secret's!");

    (void)state;
    idem_shield_set_epoch(theirs, "7:1:1");
    shield_await_connected(theirs);
    shield_learn_for_sure(theirs, 1);
    assert_int_equal(shield_ask(ours, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(ours).rejected, 1);
    idem_shield_free(ours);
    idem_shield_free(theirs);
}

/* old may be NULL. */
static struct idem_shield *
open_signing(struct idem_redis_options options,
             const struct idem_redis_secret *secret,
             const struct idem_redis_secret *old)
{
    struct idem_shield *shield;

    options.secret = secret->bytes;
    options.secret_id = secret->id;
    options.old_secrets = old;
    options.n_old_secrets = old != NULL;
    assert_int_equal(idem_redis_new(&shield, &options, NULL), IDEM_OK);
    shield_await_connected(shield);
    return shield;
}

/* One server signs with the new secret already and one still with the old: each
 * believes the other. Who knows the new one alone takes the old for absent. */
static void
a_secret_is_changed_server_by_server(void **state)
{
    const struct idem_redis_secret old = {1, idem_bytes_of("the old secret..")};
    const struct idem_redis_secret new = {2, idem_bytes_of("the new secret..")};
    struct idem_redis_options options = {
        .url = redis_url(redis), .budget_ms = 5000, .epoch = "7:1:1"};
    struct idem_shield *before, *changed, *after;

    (void)state;
    before = open_signing(options, &old, &new);
    changed = open_signing(options, &new, &old);
    after = open_signing(options, &new, NULL);
    shield_learn_for_sure(before, 1);
    shield_learn_for_sure(changed, 2);
    assert_int_equal(shield_ask(changed, 1), IDEM_VERDICT_DONE);
    assert_int_equal(shield_ask(before, 2), IDEM_VERDICT_DONE);
    assert_int_equal(shield_ask(after, 2), IDEM_VERDICT_DONE);
    assert_int_equal(shield_ask(after, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(after).foreign, 1);
    assert_int_equal(shield_counts(after).rejected, 1);
    idem_shield_free(before);
    idem_shield_free(changed);
    idem_shield_free(after);
}

static void
two_secrets_of_one_id_or_too_many_are_refused(void **state)
{
    struct idem_redis_secret old[IDEM_REDIS_SECRETS_MAX];
    struct idem_redis_options options = {
        .url = "redis://127.0.0.1:1",
        .secret = idem_bytes_of("a secret of tests"),
        .old_secrets = old,
        .n_old_secrets = 1,
    };
    struct idem_shield *shield = NULL;
    struct idem_error err;

    (void)state;
    for (uint32_t i = 0; i < IDEM_REDIS_SECRETS_MAX; i++)
        old[i] = (struct idem_redis_secret){
            i, idem_bytes_of("another of the tests")};
    assert_int_equal(idem_redis_new(&shield, &options, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "have the id 0"));
    options.secret_id = 99;
    options.n_old_secrets = IDEM_REDIS_SECRETS_MAX;
    assert_int_equal(idem_redis_new(&shield, &options, &err),
                     IDEM_INVALID_ARGUMENT);
    old[1].bytes = idem_bytes_of("short");
    options.n_old_secrets = 2;
    assert_int_equal(idem_redis_new(&shield, &options, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_null(strstr(err.message, "short"));
    assert_null(shield);
}

static void
a_short_secret_or_a_bad_url_is_refused(void **state)
{
    struct idem_redis_options options = {.url = "redis://127.0.0.1:1",
                                         .secret = idem_bytes_of("short")};
    struct idem_shield *shield = NULL;

    (void)state;
    assert_int_equal(idem_redis_new(&shield, &options, NULL),
                     IDEM_INVALID_ARGUMENT);
    options.secret = idem_bytes_of("a secret of tests");
    options.url = "tcp://127.0.0.1:1";
    assert_int_equal(idem_redis_new(&shield, &options, NULL),
                     IDEM_INVALID_ARGUMENT);
    options.url = NULL;
    assert_int_equal(idem_redis_new(&shield, &options, NULL),
                     IDEM_INVALID_ARGUMENT);
    assert_null(shield);
}

/* B050, I9. */
static void
every_key_has_a_time_to_live(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});

    (void)state;
    for (unsigned n = 0; n < 30; n++)
        shield_learn_for_sure(shield, n);
    assert_keyspace_has("db0:keys=30,expires=30,");
    idem_shield_free(shield);
}

/* Say a command about the key of a digest: what Redis answers. */
static void
say_of_key(const char *verb, const uint8_t *digest, const char *rest,
           char *reply, size_t size)
{
    char command[256];
    int at = snprintf(command, sizeof(command), "%s \"idem:", verb);

    for (int i = 0; i < IDEM_SHA256_SIZE; i++)
        at += snprintf(command + at, sizeof(command) - (size_t)at, "\\x%02x",
                       digest[i]);
    snprintf(command + at, sizeof(command) - (size_t)at, "\"%s", rest);
    redis_say(redis, command, reply, size);
}

/* Fills a key whose window ends then, and says what Redis gives it. */
static long
ttl_of_fill(struct idem_shield *shield, int64_t left_ms)
{
    const struct idem_clock *clock = idem_clock_system();
    char text[IDEM_KEY_MAX + 1], reply[64];
    struct idem_fingerprint fingerprint = {.version = 1};
    struct idem_answer answer = {.status = IDEM_OK};
    struct idem_record_id id = {.scope = "s"};

    idem_key_mint(text, clock, 1000);
    idem_sha256_of(idem_bytes_of(text), id.digest);
    idem_shield_fill(shield, &id, &fingerprint, &answer,
                     clock->wall_ms(clock) + left_ms);
    shield_learn_for_sure(shield, 1); /* whose fill comes after it */
    say_of_key("PTTL", id.digest, "", reply, sizeof(reply));
    return strtol(reply + 1, NULL, 10);
}

static void
an_entry_does_not_outlive_its_keys_window(void **state)
{
    struct idem_shield *shield =
        open_connected((struct idem_redis_options){.entry_ttl_ms = 60000});

    (void)state;
    assert_in_range(ttl_of_fill(shield, 10000), 1, 10000);
    assert_in_range(ttl_of_fill(shield, 86400000), 50000, 60000);
    assert_int_equal(ttl_of_fill(shield, -1), -2); /* it is not there */
    idem_shield_free(shield);
}

static void
a_large_answer_is_not_cached(void **state)
{
    struct idem_shield *shield =
        open_connected((struct idem_redis_options){.max_entry = 200});

    (void)state;
    shield_learn(shield, 1);
    shield_ask(shield, 2);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(shield).fills, 0);
    idem_shield_free(shield);
}

/* Fault 33. */
static void
after_a_flush_everything_is_absent_until_it_is_filled_again(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});

    (void)state;
    shield_learn_for_sure(shield, 1);
    say("FLUSHALL");
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    shield_learn_for_sure(shield, 1);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    idem_shield_free(shield);
}

static void
a_foreign_value_in_our_place_is_a_miss(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});
    uint8_t digest[IDEM_SHA256_SIZE];
    struct idem_shield_counts before = shield_counts(shield);
    char reply[64];

    (void)state;
    idem_sha256_of(idem_bytes_of("key-1"), digest);
    say_of_key("LPUSH", digest, " 1", reply, sizeof(reply));
    assert_string_equal(reply, ":1\r\n");
    for (int i = 0; i < 20; i++)
        assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(shield).failed, 20);
    assert_int_equal(shield_counts(shield).skipped, before.skipped);
    idem_shield_free(shield);
}

static void
a_name_is_looked_up_and_a_database_selected(void **state)
{
    char url[64];
    struct idem_shield *shield;

    (void)state;
    snprintf(url, sizeof(url), "redis://localhost:%u/5", redis_port(redis));
    shield = open_connected((struct idem_redis_options){.url = url});
    shield_learn_for_sure(shield, 1);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    assert_keyspace_has("db5:keys=1,expires=1,");
    idem_shield_free(shield);
}

static void
a_name_that_nobody_has_costs_nothing(void **state)
{
    struct idem_shield *shield = shield_open("redis://nobody.invalid:6379");

    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(shield).skipped, 20);
    idem_shield_free(shield);
}

static void
a_password_opens_and_a_wrong_one_does_not(void **state)
{
    struct redis *locked = redis_start("requirepass \"hunter@2\"\n");
    struct idem_shield *right, *wrong;
    char url[2][96];

    (void)state;
    snprintf(url[0], sizeof(url[0]), "redis://:hunter%%402@127.0.0.1:%u",
             redis_port(locked));
    snprintf(url[1], sizeof(url[1]), "redis://:hunter3@127.0.0.1:%u",
             redis_port(locked));
    wrong = shield_open(url[1]);
    right = open_connected((struct idem_redis_options){.url = url[0]});
    shield_learn_for_sure(right, 1);
    assert_int_equal(shield_ask(right, 1), IDEM_VERDICT_DONE);
    assert_int_equal(shield_ask(wrong, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(shield_counts(wrong).skipped, 1);
    idem_shield_free(right);
    idem_shield_free(wrong);
    redis_free(locked);
}

#define WITH_REDIS(test) cmocka_unit_test_setup_teardown(test, start, stop)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_REDIS(a_recorded_answer_is_found_and_is_the_same),
        WITH_REDIS(what_was_never_recorded_is_absent),
        WITH_REDIS(the_key_of_another_request_is_reused),
        WITH_REDIS(entries_of_another_epoch_are_rejected),
        WITH_REDIS(without_a_known_epoch_there_are_no_hits),
        WITH_REDIS(entries_of_another_secret_are_rejected),
        WITH_REDIS(a_secret_is_changed_server_by_server),
        cmocka_unit_test(two_secrets_of_one_id_or_too_many_are_refused),
        cmocka_unit_test(a_short_secret_or_a_bad_url_is_refused),
        WITH_REDIS(every_key_has_a_time_to_live),
        WITH_REDIS(an_entry_does_not_outlive_its_keys_window),
        WITH_REDIS(a_large_answer_is_not_cached),
        WITH_REDIS(after_a_flush_everything_is_absent_until_it_is_filled_again),
        WITH_REDIS(a_foreign_value_in_our_place_is_a_miss),
        WITH_REDIS(a_name_is_looked_up_and_a_database_selected),
        cmocka_unit_test(a_name_that_nobody_has_costs_nothing),
        cmocka_unit_test(a_password_opens_and_a_wrong_one_does_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
