/* Signed tokens: whom they prove, and each way in which one proves nothing. */
#include "support.h"

#include "bearer_jwt.h"
#include "files.h"
#include "signer.h"
#include "tempdir.h"

#include <idem/reason.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW_S 1700000000
#define NOW_MS (NOW_S * INT64_C(1000))
#define SECRET "a secret of thirty-two bytes and"

#define GOOD                                                                   \
    "\"iss\":\"bank\",\"aud\":\"pay\",\"sub\":\"svc:teller\","                 \
    "\"exp\":1700000100"
#define RS256 "{\"alg\":\"RS256\",\"kid\":\"r\"}"
#define ES256 "{\"alg\":\"ES256\",\"kid\":\"e\"}"
#define HS256 "{\"alg\":\"HS256\",\"kid\":\"h\"}"

struct world {
    struct tempdir dir;
    char path[128];
    struct signer *rsa, *p256, *secret;
    struct bearer_jwt *jwt;
    struct idem_arena *arena;
    struct idem_principal principal;
    struct idem_error err;
};

/* --- Support --- */

static void
write_set(const char *path, struct signer *const signers[],
          const char *const kids[], unsigned n)
{
    char text[8192] = "{\"keys\":[";

    for (unsigned i = 0; i < n; i++) {
        char *jwk = signer_jwk(signers[i], kids[i], NULL);

        strcat(text, i ? "," : "");
        strcat(text, jwk);
        free(jwk);
    }
    strcat(text, "]}");
    file_put(path, text);
}

static enum idem_status
open_jwt(struct world *world, struct bearer_jwt **jwt)
{
    const struct idem_jwt_options options = {
        .keys_file = world->path, .issuer = "bank", .audience = "pay"};

    return bearer_jwt_new(jwt, &options, NULL, NULL, &world->err);
}

/* Made once: under valgrind it takes most of a minute. */
static struct signer *rsa;

static int
make_rsa(void **state)
{
    (void)state;
    rsa = signer_rsa(2048);
    return 0;
}

static int
free_rsa(void **state)
{
    (void)state;
    signer_free(rsa);
    return 0;
}

static int
set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    tempdir_open(&world->dir);
    tempdir_file(&world->dir, "keys.json", world->path, sizeof world->path);
    world->rsa = rsa;
    world->p256 = signer_p256();
    world->secret = signer_secret(SECRET, sizeof(SECRET) - 1);
    write_set(world->path,
              (struct signer *[]){world->rsa, world->p256, world->secret},
              (const char *[]){"r", "e", "h"}, 3);
    world->arena = idem_arena_new();
    assert_int_equal(open_jwt(world, &world->jwt), IDEM_OK);
    *state = world;
    return 0;
}

static int
tear_down(void **state)
{
    struct world *world = *state;

    bearer_jwt_free(world->jwt);
    idem_arena_free(world->arena);
    signer_free(world->p256);
    signer_free(world->secret);
    tempdir_close(&world->dir);
    free(world);
    return 0;
}

/* Frees the token. */
static enum idem_status
check(struct world *world, char *token)
{
    enum idem_status status;

    world->err = (struct idem_error){0};
    status =
        bearer_jwt_check(world->jwt, idem_bytes_of(token), NOW_MS, world->arena,
                         &world->principal, NULL, &world->err);
    if (status != IDEM_OK)
        assert_null(strstr(world->err.message, token));
    free(token);
    return status;
}

static void
assert_proves(struct world *world, char *token, const char *identity)
{
    if (check(world, token) != IDEM_OK)
        fail_msg("%s: %s", world->err.reason, world->err.message);
    assert_true(
        idem_bytes_equal(world->principal.identity, idem_bytes_of(identity)));
}

static void
assert_refused(struct world *world, char *token, const char *reason)
{
    assert_int_equal(check(world, token), IDEM_UNAUTHENTICATED);
    assert_string_equal(world->err.reason, reason);
}

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
        if (check(w, signer_sign(w->p256, faults[i].header,
                                 faults[i].claims)) != IDEM_UNAUTHENTICATED ||
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
            assert_int_equal(check(w, touched), IDEM_UNAUTHENTICATED);
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

struct told {
    pthread_mutex_t lock;
    pthread_cond_t change;
    unsigned times;
};

static void
note(void *with, const char *file, const struct idem_error *err)
{
    struct told *told = with;

    (void)file;
    (void)err;
    pthread_mutex_lock(&told->lock);
    told->times++;
    pthread_cond_broadcast(&told->change);
    pthread_mutex_unlock(&told->lock);
}

/* It was found good, and it is over, or its key is gone. */
static void
a_token_that_was_seen_is_held_to_its_time_and_its_key(void **state)
{
    struct world *w = *state;
    struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .change = PTHREAD_COND_INITIALIZER};
    const struct idem_jwt_options options = {
        .keys_file = w->path, .issuer = "bank", .audience = "pay"};
    char *token = signer_sign(w->p256, ES256, "{" GOOD "}");

    bearer_jwt_free(w->jwt);
    assert_int_equal(bearer_jwt_new(&w->jwt, &options, note, &told, &w->err),
                     IDEM_OK);
    assert_proves(w, strdup(token), "svc:teller");
    assert_proves(w, strdup(token), "svc:teller");
    assert_int_equal(bearer_jwt_check(w->jwt, idem_bytes_of(token),
                                      NOW_MS + 160000, w->arena, &w->principal,
                                      NULL, &w->err),
                     IDEM_UNAUTHENTICATED);
    assert_string_equal(w->err.reason, IDEM_TOKEN_EXPIRED);
    write_set(w->path, (struct signer *[]){w->secret}, (const char *[]){"h"},
              1);
    pthread_mutex_lock(&told.lock);
    while (told.times == 0)
        pthread_cond_wait(&told.change, &told.lock);
    pthread_mutex_unlock(&told.lock);
    assert_refused(w, token, IDEM_TOKEN_KEY);
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

/* --- Key files --- */

static void
assert_bad_set(struct world *w, const char *text, const char *why)
{
    struct bearer_jwt *jwt;

    file_put(w->path, text);
    assert_int_equal(open_jwt(w, &jwt), IDEM_INVALID_ARGUMENT);
    if (!strstr(w->err.message, why) || !strstr(w->err.message, w->path))
        fail_msg("%s: %s", why, w->err.message);
}

static void
a_bad_set_is_refused_with_its_place(void **state)
{
    struct world *w = *state;
    struct signer *weak = signer_rsa(1024);
    char *jwk = signer_jwk(weak, "w", NULL), text[4096];

    snprintf(text, sizeof text, "{\"keys\":[%s]}", jwk);
    assert_bad_set(w, text, "keys[0]: its n has under 2048");
    assert_bad_set(w, "", "is no JSON");
    assert_bad_set(w, "{\"keys\":{}}", "is no list");
    assert_bad_set(w, "{\"keys\":[]}", "has no key");
    assert_bad_set(w, "{\"keys\":[7]}", "keys[0]: is no object");
    assert_bad_set(w, "{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2hvcnQ\"}]}",
                   "keys[0]: k has under 32 bytes");
    assert_bad_set(w, "{\"keys\":[{\"kty\":\"oct\",\"k\":\"=\"}]}",
                   "keys[0]: k is not base64url");
    assert_bad_set(w,
                   "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\""
                   ",\"y\":\"AA\"}]}",
                   "keys[0]: its x or y has not 32 bytes");
    assert_bad_set(w,
                   "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
                   "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\",\"y\":"
                   "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}]}",
                   "keys[0]: is no point of P-256");
    free(jwk);
    signer_free(weak);
}

static void
a_set_with_a_private_key_or_one_id_twice_is_refused(void **state)
{
    struct world *w = *state;
    char *private = signer_jwk(w->p256, "e", ",\"d\":\"AA\"");
    char *jwk = signer_jwk(w->p256, "e", NULL), text[4096];

    snprintf(text, sizeof text, "{\"keys\":[%s]}", private);
    assert_bad_set(w, text, "keys[0]: has a private key");
    snprintf(text, sizeof text, "{\"keys\":[%s,%s]}", jwk, jwk);
    assert_bad_set(w, text, "keys[1]: its kid is another key's");
    free(private);
    free(jwk);
}

/* An issuer's set has keys for other things beside ours. */
static void
keys_for_others_are_left_out(void **state)
{
    struct world *w = *state;
    char *ours = signer_jwk(w->p256, "e", ",\"use\":\"sig\",\"alg\":\"ES256\"");
    char *secret = signer_jwk(w->rsa, "r", ",\"use\":\"enc\"");
    char *longer = signer_jwk(w->secret, "h", ",\"alg\":\"HS512\""), text[8192];

    snprintf(text, sizeof text,
             "{\"keys\":[%s,%s,{\"kty\":\"OKP\",\"kid\":\"o\"},%s]}", secret,
             longer, ours);
    file_put(w->path, text);
    bearer_jwt_free(w->jwt);
    assert_int_equal(open_jwt(w, &w->jwt), IDEM_OK);
    assert_proves(w, signer_sign(w->p256, ES256, "{" GOOD "}"), "svc:teller");
    assert_refused(w, signer_sign(w->rsa, RS256, "{" GOOD "}"), IDEM_TOKEN_KEY);
    assert_refused(w, signer_sign(w->secret, HS256, "{" GOOD "}"),
                   IDEM_TOKEN_KEY);
    free(ours);
    free(secret);
    free(longer);
}

static void
options_that_are_missing_or_wrong_are_named(void **state)
{
    struct world *w = *state;
    struct idem_jwt_options options = {.keys_file = w->path, .issuer = "bank"};
    struct bearer_jwt *jwt;

    assert_int_equal(bearer_jwt_new(&jwt, &options, NULL, NULL, &w->err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(w->err.message, "audience"));
    options.audience = "pay";
    options.skew_ms = 3600001;
    assert_int_equal(bearer_jwt_new(&jwt, &options, NULL, NULL, &w->err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(w->err.message, "skew_ms 3600001"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
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
        TEST(a_token_that_was_seen_is_held_to_its_time_and_its_key),
        TEST(a_signature_that_takes_long_is_left_for_later),
        TEST(a_bad_set_is_refused_with_its_place),
        TEST(a_set_with_a_private_key_or_one_id_twice_is_refused),
        TEST(keys_for_others_are_left_out),
        TEST(options_that_are_missing_or_wrong_are_named),
    };

    return cmocka_run_group_tests(tests, make_rsa, free_rsa);
}
