#ifndef BEARER_WORLD_H
#define BEARER_WORLD_H

#include "support.h"

#include "bearer_jwt.h"
#include "files.h"
#include "signer.h"
#include "tempdir.h"

#include <idem/reason.h>

/* A set of keys in a file, and tokens that are held to it. */

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
void write_set(const char *path, struct signer *const signers[],
               const char *const kids[], unsigned n);
enum idem_status open_jwt(struct world *world, struct bearer_jwt **jwt);

/* Made once: under valgrind it takes most of a minute. */
extern struct signer *rsa;
int make_rsa(void **state);
int free_rsa(void **state);
int bearer_set_up(void **state);
int bearer_tear_down(void **state);

/* Frees the token. */
enum idem_status bearer_check(struct world *world, char *token);
void assert_proves(struct world *world, char *token, const char *identity);
void assert_refused(struct world *world, char *token, const char *reason);

#endif
