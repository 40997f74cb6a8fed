#ifndef LEDGER_WORLD_H
#define LEDGER_WORLD_H

#include "support.h"

#include "effects.h"
#include "postgres.h"
#include "tempdir.h"

#include <idem/resolve.h>
#include <idem/standard.h>

/* A server as idem_server_open makes it, with the service of effects.proto, and
 * somebody at its door who says which tenant calls. */

struct gatekeeper {
    struct idem_interceptor base;
    const char *tenant; /* "anna"; changed while nothing is called */
};

struct ledger_world {
    struct tempdir dir;
    char books[128], push_log[128];
    struct effects effects;
    struct idem_server *server;
    struct idem_channel *channel;
    struct gatekeeper *gatekeeper;
};

/* The authority of the worlds that follow; NULL: sqlite. */
extern struct postgres *ledger_postgres;

/* Fails the test with the error's words. */
void must(enum idem_status status, const struct idem_error *err);

/* cmocka fixtures. */
int ledger_world_up(void **state);
int ledger_world_down(void **state);

/* Effects.Add of 7 under that key. */
enum idem_status ledger_add(struct ledger_world *world, const char *key,
                            struct idem_outcome *outcome);

/* idem_resolve or idem_abandon. */
typedef enum idem_status ask_fn(struct idem_channel *channel,
                                const struct idem_method *method,
                                const char *key, int64_t timeout_ms,
                                struct idem_resolution *resolution,
                                struct idem_error *err);

/* The state; the rest of the resolution is not looked at. Fails the test when
 * the call fails. */
enum idem_resolved ledger_state(struct ledger_world *world, ask_fn *ask,
                                const struct idem_method *method,
                                const char *key);

#endif
