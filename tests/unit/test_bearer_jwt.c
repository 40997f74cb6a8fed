/* Signed tokens: whom they prove, and each way in which one proves nothing. */
#include "bearer_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Support --- */

static bool
has_role(const struct world *world, unsigned i, const char *role)
{
    return i < world->principal.n_roles &&
           idem_bytes_equal(world->principal.roles[i], idem_bytes_of(role));
}

/* --- Whom they prove --- */

static void
each_algorithm_proves_the_subject(void **state)
{
    struct world *w = *state;

    assert_proves(w, signer_sign(w->rsa, RS256, "{" GOOD "}"), "svc:teller");
    assert_proves(w, signer_sign(w->p256, ES256, "{" GOOD "}"), "svc:teller");
    assert_proves(w, signer_sign(w->secret, HS256, "{" GOOD "}"), "svc:teller");
}

static void
without_a_kid_the_only_key_of_the_algorithm_is_meant(void **state)
{
    struct world *w = *state;
    struct signer *other = signer_p256();

    assert_proves(w, signer_sign(w->p256, "{\"alg\":\"ES256\"}", "{" GOOD "}"),
                  "svc:teller");
    write_set(w->path, (struct signer *[]){w->p256, other},
              (const char *[]){NULL, NULL}, 2);
    bearer_jwt_free(w->jwt);
    assert_int_equal(open_jwt(w, &w->jwt), IDEM_OK);
    assert_refused(w, signer_sign(w->p256, "{\"alg\":\"ES256\"}", "{" GOOD "}"),
                   IDEM_TOKEN_KEY);
    signer_free(other);
}

static void
roles_are_a_list_or_words(void **state)
{
    struct world *w = *state;

    assert_proves(w,
                  signer_sign(w->p256, ES256,
                              "{" GOOD ",\"roles\":[\"clerk\",\"boss\"]}"),
                  "svc:teller");
    assert_true(has_role(w, 0, "clerk") && has_role(w, 1, "boss"));
    assert_int_equal(w->principal.n_roles, 2);
    assert_proves(
        w,
        signer_sign(w->p256, ES256, "{" GOOD ",\"roles\":\" clerk  boss \"}"),
        "svc:teller");
    assert_true(has_role(w, 0, "clerk") && has_role(w, 1, "boss"));
    assert_int_equal(w->principal.n_roles, 2);
    assert_proves(w, signer_sign(w->p256, ES256, "{" GOOD "}"), "svc:teller");
    assert_int_equal(w->principal.n_roles, 0);
}

/* Between the edges of exp and nbf, each with the skew of a minute. */
static void
time_counts_with_the_skew(void **state)
{
    static const struct {
        const char *claims, *reason; /* NULL: good */
    } cases[] = {
        {"\"exp\":1699999941", NULL},
        {"\"exp\":1699999940", IDEM_TOKEN_EXPIRED},
        {"\"exp\":1699999940.5", NULL},
        {"\"exp\":1e300", NULL},
        {"\"exp\":-1e300", IDEM_TOKEN_EXPIRED},
        {"\"exp\":1800000000,\"nbf\":1700000060", NULL},
        {"\"exp\":1800000000,\"nbf\":1700000061", IDEM_TOKEN_EARLY},
        {"\"nbf\":1", IDEM_TOKEN_EXPIRED},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char claims[256];

        snprintf(claims, sizeof claims,
                 "{\"iss\":\"bank\",\"aud\":\"pay\",\"sub\":\"s\",%s}",
                 cases[i].claims);
        if (cases[i].reason)
            assert_refused(w, signer_sign(w->secret, HS256, claims),
                           cases[i].reason);
        else
            assert_proves(w, signer_sign(w->secret, HS256, claims), "s");
    }
}

static void
the_audience_is_one_of_them(void **state)
{
    struct world *w = *state;

    assert_proves(w,
                  signer_sign(w->secret, HS256,
                              "{\"iss\":\"bank\",\"aud\":[\"x\",\"pay\"],"
                              "\"sub\":\"s\",\"exp\":1800000000}"),
                  "s");
}

/* --- What proves nothing --- */

struct fault {
    const char *header, *claims, *reason;
};

/* All are signed by the P-256 key. */
static void
each_fault_has_its_reason(void **state)
{
    static const struct fault faults[] = {
        {"{\"alg\":\"ES256\",\"kid\":\"?\"}", "{" GOOD "}", IDEM_TOKEN_KEY},
        {"{\"alg\":\"none\",\"kid\":\"e\"}", "{" GOOD "}",
         IDEM_TOKEN_ALGORITHM},
        {"{\"alg\":\"NONE\"}", "{" GOOD "}", IDEM_TOKEN_ALGORITHM},
        {"{\"alg\":\"es256\",\"kid\":\"e\"}", "{" GOOD "}",
         IDEM_TOKEN_ALGORITHM},
        {"{\"alg\":\"ES384\",\"kid\":\"e\"}", "{" GOOD "}",
         IDEM_TOKEN_ALGORITHM},
        {"{\"alg\":256,\"kid\":\"e\"}", "{" GOOD "}", IDEM_TOKEN_ALGORITHM},
        {"{\"kid\":\"e\"}", "{" GOOD "}", IDEM_TOKEN_ALGORITHM},
        {"{\"alg\":\"RS256\",\"kid\":\"e\"}", "{" GOOD "}",
         IDEM_TOKEN_ALGORITHM},
        {"{\"alg\":\"HS256\",\"kid\":\"e\"}", "{" GOOD "}",
         IDEM_TOKEN_ALGORITHM},
        {"{\"alg\":\"ES256\",\"kid\":\"r\"}", "{" GOOD "}",
         IDEM_TOKEN_ALGORITHM},
        {"{\"alg\":\"RS256\",\"kid\":\"r\"}", "{" GOOD "}",
         IDEM_TOKEN_SIGNATURE},
        {"{\"alg\":\"HS256\",\"kid\":\"h\"}", "{" GOOD "}",
         IDEM_TOKEN_SIGNATURE},
        {"[]", "{" GOOD "}", IDEM_TOKEN_MALFORMED},
        {"{\"alg\":\"ES256\",\"alg\":\"ES256\"}", "{" GOOD "}",
         IDEM_TOKEN_MALFORMED},
        {"{\"alg\":\"ES256\",\"kid\":7}", "{" GOOD "}", IDEM_TOKEN_MALFORMED},
        {"{\"alg\":\"ES256\",\"kid\":\"e\",\"crit\":[\"b64\"]}", "{" GOOD "}",
         IDEM_TOKEN_MALFORMED},
        {ES256, "[]", IDEM_TOKEN_MALFORMED},
        {ES256, "{" GOOD ",\"sub\":\"root\"}", IDEM_TOKEN_MALFORMED},
        {ES256, "{" GOOD ",\"nbf\":\"1\"}", IDEM_TOKEN_MALFORMED},
        {ES256, "{" GOOD ",\"roles\":7}", IDEM_TOKEN_MALFORMED},
        {ES256, "{" GOOD ",\"roles\":[7]}", IDEM_TOKEN_MALFORMED},
        {ES256, "{\"iss\":\"bank\",\"aud\":\"pay\",\"exp\":1800000000}",
         IDEM_TOKEN_MALFORMED},
        {ES256,
         "{\"iss\":\"bank\",\"aud\":\"pay\",\"sub\":\"a b\","
         "\"exp\":1800000000}",
         IDEM_TOKEN_MALFORMED},
        {ES256, "{\"aud\":\"pay\",\"sub\":\"s\",\"exp\":1800000000}",
         IDEM_TOKEN_ISSUER},
        {ES256,
         "{\"iss\":\"Bank\",\"aud\":\"pay\",\"sub\":\"s\","
         "\"exp\":1800000000}",
         IDEM_TOKEN_ISSUER},
        {ES256, "{\"iss\":\"bank\",\"sub\":\"s\",\"exp\":1800000000}",
         IDEM_TOKEN_AUDIENCE},
        {ES256,
         "{\"iss\":\"bank\",\"aud\":[\"p\",\"ay\"],\"sub\":\"s\","
         "\"exp\":1800000000}",
         IDEM_TOKEN_AUDIENCE},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (bearer_check(
                w, signer_sign(w->p256, faults[i].header, faults[i].claims)) !=
                IDEM_UNAUTHENTICATED ||
            strcmp(w->err.reason, faults[i].reason) != 0)
            fail_msg("fault %zu: %s: %s", i, w->err.reason, w->err.message);
    }
}

static void
without_a_signature_it_proves_nothing(void **state)
{
    struct world *w = *state;

    assert_refused(w, signer_unsigned("{\"alg\":\"none\"}", "{" GOOD "}"),
                   IDEM_TOKEN_ALGORITHM);
    assert_refused(w, signer_unsigned(RS256, "{" GOOD "}"),
                   IDEM_TOKEN_SIGNATURE);
    assert_refused(w, signer_unsigned(HS256, "{" GOOD "}"),
                   IDEM_TOKEN_SIGNATURE);
}

/* The public key is known to all: as an HMAC's secret it must prove nothing. */
static void
a_public_key_is_no_secret(void **state)
{
    struct world *w = *state;
    char *pem = signer_pem(w->rsa);
    struct signer *forger = signer_secret(pem, strlen(pem));

    assert_refused(
        w,
        signer_sign(forger, "{\"alg\":\"HS256\",\"kid\":\"r\"}", "{" GOOD "}"),
        IDEM_TOKEN_ALGORITHM);
    assert_refused(w, signer_sign(forger, RS256, "{" GOOD "}"),
                   IDEM_TOKEN_SIGNATURE);
    signer_free(forger);
    free(pem);
}

/* Each bit of a token is signed. */
static void
a_token_that_was_touched_proves_nothing(void **state)
{
    struct world *w = *state;
    struct signer *signers[] = {w->p256, w->secret};
    const char *headers[] = {ES256, HS256};

    for (unsigned i = 0; i < 2; i++) {
        char *token = signer_sign(signers[i], headers[i], "{" GOOD "}");

        assert_proves(w, strdup(token), "svc:teller"); /* and is known now */
        for (size_t at = 0; token[at]; at++) {
            char *touched = strdup(token);

            touched[at] = touched[at] == 'A' ? 'B' : 'A';
            assert_int_equal(bearer_check(w, touched), IDEM_UNAUTHENTICATED);
        }
        free(token);
    }
}

static void
texts_that_are_no_token_are_malformed(void **state)
{
    static const char *const texts[] = {
        "",        "a",           "a.b",       "a.b.c.d", ".b.c",
        "a..c",    "a.b.c=",      "a.b.c\n",   "a b.c.d", "eyJ9.e30.x",
        "e30.!.x", "e30.e30.e+0", "e31.e30.x",
    };
    struct world *w = *state;

    assert_refused(w, signer_sign(w->secret, HS256, "{"), IDEM_TOKEN_MALFORMED);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        enum idem_status status =
            bearer_jwt_check(w->jwt, idem_bytes_of(texts[i]), NOW_MS, w->arena,
                             &w->principal, NULL, &w->err);

        assert_int_equal(status, IDEM_UNAUTHENTICATED);
        assert_true(strcmp(w->err.reason, IDEM_TOKEN_MALFORMED) == 0 ||
                    strcmp(w->err.reason, IDEM_TOKEN_ALGORITHM) == 0);
    }
}

/* Who reads may ask for no more than what is quick. */
static void
a_signature_that_takes_long_is_left_for_later(void **state)
{
    struct world *w = *state;
    char *pair = signer_sign(w->p256, ES256, "{" GOOD "}");
    char *secret = signer_sign(w->secret, HS256, "{" GOOD "}");
    bool later = false;

    assert_int_not_equal(bearer_jwt_check(w->jwt, idem_bytes_of(pair), NOW_MS,
                                          w->arena, &w->principal, &later,
                                          &w->err),
                         IDEM_OK);
    assert_true(later);
    assert_proves(w, strdup(pair), "svc:teller");
    assert_int_equal(bearer_jwt_check(w->jwt, idem_bytes_of(pair), NOW_MS,
                                      w->arena, &w->principal, &later, &w->err),
                     IDEM_OK);
    assert_false(later);
    later = true;
    assert_int_equal(bearer_jwt_check(w->jwt, idem_bytes_of(secret), NOW_MS,
                                      w->arena, &w->principal, &later, &w->err),
                     IDEM_OK);
    assert_false(later);
    free(pair);
    free(secret);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, bearer_set_up, bearer_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_algorithm_proves_the_subject),
        TEST(without_a_kid_the_only_key_of_the_algorithm_is_meant),
        TEST(roles_are_a_list_or_words),
        TEST(time_counts_with_the_skew),
        TEST(the_audience_is_one_of_them),
        TEST(each_fault_has_its_reason),
        TEST(without_a_signature_it_proves_nothing),
        TEST(a_public_key_is_no_secret),
        TEST(a_token_that_was_touched_proves_nothing),
        TEST(texts_that_are_no_token_are_malformed),
        TEST(a_signature_that_takes_long_is_left_for_later),
    };

    return cmocka_run_group_tests(tests, make_rsa, free_rsa);
}
