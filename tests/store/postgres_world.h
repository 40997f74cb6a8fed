#ifndef POSTGRES_WORLD_H
#define POSTGRES_WORLD_H

#include "suite_call.h"

#include "postgres.h"
#include "tcp_proxy.h"

#include <idem/postgres.h>

/* A private PostgreSQL with the schema and a table effects, a proxy before it,
 * and a store that goes through the proxy. suite_call.h's calls work on it. */
struct postgres_world {
    struct suite suite; /* first: a world is a suite */
    struct suite_factory factory;
    struct postgres *postgres;
    struct tcp_proxy *proxy;
    struct idem_postgres_options options; /* of the store, changed at will
                                           * before world_reopen */
};

/* durable: fsync on, for tests that crash the database. */
struct postgres_world *world_open(bool durable);
void world_close(struct postgres_world *world);
int world_up(void **state);   /* one that is not durable, as a set-up */
int world_down(void **state); /* its tear-down */

/* Close the store and open it by the options. */
void world_reopen(struct postgres_world *world);

/* A turn of the store's upkeep. */
void world_maintain(struct postgres_world *world);

/* Another store on the same database, past the proxy. */
struct idem_store *world_store(struct postgres_world *world);

/* Claim again and again, as a server does, until it is MINE or a final word;
 * fails after 60 s. */
enum idem_verdict world_claim(struct suite_call *call);

/* Claim, write an effect, complete, until the answer is known. */
void world_pay(struct suite_call *call);

/* A call of mode TRANSACTION with a new minted key. */
void world_call(struct suite_call *call, struct postgres_world *world);

/* Run raw SQL on the call's own connection; true: no error. */
bool world_raw(struct suite_call *call, const char *sql);

/* Rows of a call's effect, and records of its key. */
int64_t world_effects(struct postgres_world *world,
                      const struct suite_call *call);
int64_t world_records(struct postgres_world *world,
                      const struct suite_call *call);

/* The process of the database that has the call's transaction. */
int64_t world_backend(struct suite_call *call);

/* Nothing of the call stands, and its key runs again, once. Closes it. */
void assert_runs_again(struct postgres_world *world, struct suite_call *call);

#endif
