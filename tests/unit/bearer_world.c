#include "bearer_world.h"

#include <stdlib.h>
#include <string.h>

void
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

enum idem_status
open_jwt(struct world *world, struct bearer_jwt **jwt)
{
    const struct idem_jwt_options options = {
        .keys_file = world->path, .issuer = "bank", .audience = "pay"};

    return bearer_jwt_new(jwt, &options, NULL, NULL, &world->err);
}

struct signer *rsa;

int
make_rsa(void **state)
{
    (void)state;
    rsa = signer_rsa(2048);
    return 0;
}

int
free_rsa(void **state)
{
    (void)state;
    signer_free(rsa);
    return 0;
}

int
bearer_set_up(void **state)
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

int
bearer_tear_down(void **state)
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

enum idem_status
bearer_check(struct world *world, char *token)
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

void
assert_proves(struct world *world, char *token, const char *identity)
{
    if (bearer_check(world, token) != IDEM_OK)
        fail_msg("%s: %s", world->err.reason, world->err.message);
    assert_true(
        idem_bytes_equal(world->principal.identity, idem_bytes_of(identity)));
}

void
assert_refused(struct world *world, char *token, const char *reason)
{
    assert_int_equal(bearer_check(world, token), IDEM_UNAUTHENTICATED);
    assert_string_equal(world->err.reason, reason);
}
