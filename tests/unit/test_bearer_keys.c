/* The keys of signed tokens: which sets are taken, and what is wrong with the
 * others. */
#include "bearer_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- What proves nothing --- */

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
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, bearer_set_up, bearer_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_token_that_was_seen_is_held_to_its_time_and_its_key),
        TEST(a_bad_set_is_refused_with_its_place),
        TEST(a_set_with_a_private_key_or_one_id_twice_is_refused),
        TEST(keys_for_others_are_left_out),
        TEST(options_that_are_missing_or_wrong_are_named),
    };

    return cmocka_run_group_tests(tests, make_rsa, free_rsa);
}
