#ifndef VAULT_WORLD_H
#define VAULT_WORLD_H

#include "support.h"

#include "tempdir.h"
#include "vault.idem.h"

#include <idem/auth.h>
#include <idem/standard.h>
#include <idem/token.h>

#include <pthread.h>
#include <stdatomic.h>

#define TILL_TOKEN "till-token"
#define CLERK_TOKEN "clerk-token"
#define GUEST_TOKEN "guest-token"

#define VAULT_ADDRESS "tcp://127.0.0.1:0"

/* A server with the service of vault.proto over SQLite, which asks who calls.
 */
struct vault_world {
    struct tempdir dir;
    char tokens[128], rules[128], keys[128]; /* paths of files in it */
    char books[128];
    struct idem_server *server;
    atomic_int ran;      /* Puts */
    atomic_int listened; /* Listens */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t change;
    unsigned good, bad; /* readings of files */
};

/* The folder and the paths; the server comes next. */
void vault_world_init(struct vault_world *world);
void vault_world_fini(struct vault_world *world);

/* Fills in who is told of readings. address: "tcp://127.0.0.1:0". */
void vault_world_open(struct vault_world *world, const char *address,
                      struct idem_auth_options *auth,
                      const struct idem_tls_options *tls);

/* At VAULT_ADDRESS, with the token file of vault_world_write_tokens. */
void vault_world_open_with_tokens(struct vault_world *world);

/* A line each for svc:till, svc:clerk with these roles, and svc:guest. */
void vault_world_write_tokens(const struct vault_world *world,
                              const char *clerks_roles);

/* Of a test: a world with a token file, the clerk's roles keeper and night. */
int vault_set_up(void **state);
int vault_tear_down(void **state);

/* Until files were read again so often. */
void vault_world_await(struct vault_world *world, unsigned good, unsigned bad);

/* A channel to it. */
struct idem_channel *
vault_world_channel(const struct vault_world *world,
                    const struct idem_channel_options *options);

/* Options of a call with this token (NULL: none) and key (NULL: minted); they
 * are in shown. */
struct vault_shown {
    char header[8192];
    struct idem_call_metadata metadata;
    struct idem_call_options options;
};
const struct idem_call_options *vault_show(struct vault_shown *shown,
                                           const char *token, const char *key);

/* A call with this token of its own; NULL: none. key NULL: minted. */
struct idem_outcome world_put(struct idem_channel *channel, const char *token,
                              const char *key, int64_t *number);
struct idem_outcome world_knock(struct idem_channel *channel,
                                const char *token);

/* An author's own function: knows "friend-…" by what follows. with is "mine".
 */
idem_auth_fn vault_check_friend;

/* What WhoAmI says of the token. */
void assert_who(struct idem_channel *channel, const char *token,
                const char *identity, const char *roles);

/* The reply is the caller's; it must come. */
vault_who_am_i_reply *world_who(struct idem_channel *channel,
                                const char *token);

/* Status and reason, with the message when they are not these. */
void assert_told(const struct idem_outcome *outcome, enum idem_status status,
                 const char *reason);

/* Records in the books. */
int vault_records(const struct vault_world *world);

#endif
