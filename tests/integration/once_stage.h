#ifndef ONCE_STAGE_H
#define ONCE_STAGE_H

#include "support.h"

#include "effects.h"
#include "tempdir.h"

#include <idem/once.h>

/* A real server with the service of effects.proto, idem.v1.Ledger and once in
 * its chain, on a real authority, and a client of it. */

#define STAGE_SERVERS 2

enum stage_kind {
    STAGE_SQLITE_INPROC,
    STAGE_SQLITE_TCP,
    STAGE_POSTGRES, /* with Redis in front, tcp, two servers */
};

struct stage {
    enum stage_kind kind;
    int64_t drain_ms; /* of the servers of the next stage_rebuild; 0: theirs */
    struct tempdir dir;
    char books[128], push_log[128];
    struct effects effects; /* of all servers */
    unsigned n;             /* servers */
    struct idem_server *servers[STAGE_SERVERS];
    struct idem_interceptor *once[STAGE_SERVERS]; /* the servers' */
    struct idem_channel *channels[STAGE_SERVERS];
};

/* What came back of one call. */
struct called {
    enum idem_status status;
    struct idem_outcome outcome;
    int64_t number, amount;
    uint8_t *body;
    size_t body_size;
};

typedef enum idem_status stage_call_fn(struct idem_channel *channel,
                                       const effects_add_request *request,
                                       effects_add_reply **reply,
                                       const struct idem_call_options *options,
                                       struct idem_outcome *outcome);

/* Group set-up of STAGE_POSTGRES. */
int stage_servers_up(void **state);
int stage_servers_down(void **state);
struct postgres *stage_postgres(void);
struct redis *stage_redis(void);

int stage_sqlite_inproc(void **state);
int stage_sqlite_tcp(void **state);
int stage_both(void **state); /* PostgreSQL and Redis */
int stage_down(void **state);

/* A cmocka test on a stage, which is one of these set-ups. */
#define STAGE_TEST(stage, name)                                                \
    {                                                                          \
#name " on " #stage, name, stage, stage_down, NULL                     \
    }

/* Add a server interceptor, or a client one, which the stage owns: makes the
 * servers and channels anew. */
void stage_rebuild(struct stage *stage, struct idem_interceptor *on_server,
                   struct idem_interceptor *on_client);

/* To add `amount`. */
effects_add_request stage_request(int64_t amount);

/* Call the first server and wait; call is effects_add, … */
struct called stage_call(struct stage *stage, stage_call_fn *call,
                         const char *key, const effects_add_request *request);

/* Add `amount` under that key. */
struct called stage_add(struct stage *stage, const char *key, int64_t amount);
void called_free(struct called *called);

/* Same status, same bytes, marked as a replay, final. */
void assert_replay_of(const struct called *replay, const struct called *first);

/* A call that runs on a thread of its own; join gives what came back. */
struct stage_thread;
struct stage_thread *stage_start(struct stage *stage, unsigned server,
                                 stage_call_fn *call, const char *key,
                                 const effects_add_request *request);
struct called stage_join(struct stage_thread *thread);

/* Rows in the table. */
int64_t stage_effects(struct stage *stage);
struct idem_once_counts stage_counts(struct stage *stage, unsigned server);

/* Wait until so many duplicates wait beside a call of that server. */
void stage_await_attached(struct stage *stage, unsigned server,
                          uint64_t attached);

/* Wait until that server has asked its store so often. */
void stage_await_claims(struct stage *stage, unsigned server, uint64_t claims);

#endif
