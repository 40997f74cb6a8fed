#ifndef STORE_POSTGRES_H
#define STORE_POSTGRES_H

#include <pthread.h>
#include <stdatomic.h>

#include <idem/call.h>
#include <idem/linger.h>
#include <idem/postgres.h>

#include "store_postgres_busy.h"
#include "store_postgres_link.h"
#include "store_postgres_lost.h"
#include "store_postgres_plans.h"
#include "store_postgres_queue.h"
#include "store_postgres_sql.h"
#include "store_postgres_windows.h"
#include "tx.h"

/* The authority on PostgreSQL: two queues of tickets, a few sessions that serve
 * them, each a thread with a connection of its own. A transaction stays on its
 * session, whose thread sleeps while the handler writes through it. LEASED work
 * has sessions of its own, so that it never waits for a handler.
 *
 * Lock order: the store's lock, then that of a part of it (epoch, lost claims,
 * windows), of which none is taken in another; no callback runs under one. */

#define POSTGRES_SCHEMA_VERSION 4
#define POSTGRES_TRIES 3 /* of a statement whose connection was lost */

/* After the deadline: for the server's own time-out to be told, and for a
 * commit that is under way. */
#define GRACE_NS INT64_C(100000000)
#define COMMIT_GRACE_NS INT64_C(1000000000)

struct pg_batch;
struct pg_share;
struct pg_store;

/* What a session serves. */
enum pg_role {
    PG_GROUP, /* LEASED work */
    PG_BRIEF, /* looks and what else does not pin: they wait for no handler */
    PG_LONG,  /* that too, and what pins: transactions and reads */
    PG_STATEMENT, /* transaction STATEMENT, many at a time */
    PG_ROLES,
};

/* A session's thread alone touches it, but for what the store's lock guards;
 * while a handler has the transaction, its thread has link and tx. */
struct pg_session {
    struct idem_tx tx; /* first: a tx is its session */
    enum pg_role role;
    struct pg_batch *batch; /* PG_GROUP's; else NULL */
    struct pg_share *share; /* PG_STATEMENT's and PG_LONG's; else NULL */
    struct pg_store *postgres;
    bool pooled; /* store_postgres_pooled.h */
    struct pg_link link;
    struct statements statements;
    struct pg_plans plans;
    unsigned tables;  /* of the store, when it was connected */
    int64_t owner;    /* of the claim under way */
    int64_t until_ns; /* the operation under way ends */
    int64_t retry_ns; /* while down: connect not before this */
    int64_t backoff_ns;
    bool pinned;   /* a transaction is open */
    bool joint;    /* … of a group */
    bool soiled;   /* a handler changed what outlives it */
    bool changed;  /* … what the next one of its group would meet */
    bool in_front; /* a statement of the group goes in front of the handler's
                    * next one: */
    enum statement front;
    int64_t begun_ms; /* … then, by the database's clock */
    bool taken;       /* … over a released record: complete updates it */
    bool touched;     /* … by its handler */
    bool guarded; /* … and there is a savepoint in front of its work … */
    bool guarded_late; /* … but not of all of it: */
    char savepoint[40];
    unsigned savepoints; /* made so far */
    pthread_t thread;
    struct idem_linger linger;
    bool lone;          /* what it served last, since it slept, was one call */
    atomic_bool called; /* while it lingers: it is idle no more */

    pthread_cond_t wake; /* the rest: by the store's lock */
    bool counted;        /* among those that are up */
    bool idle;
    struct idem_host host; /* PG_GROUP's thread, when claims are granted */
    bool hosts;            /* … it runs handlers, and then takes what waits */
    bool joined;           /* it served a group last */
    bool read_over;        /* end_read */
    struct idem_ticket *pending; /* complete or release of the transaction */
    bool tried; /* has connected, or failed to, at least once */
};

/* Calls of transaction STATEMENT; store_postgres_statement.c. */
struct pg_sharing {
    struct pg_queue queue;
    struct pg_busy busy;  /* keys of the shares */
    bool waking;          /* a session is woken, and not up yet */
    unsigned at_work;     /* sessions */
    unsigned narrow;      /* so many shares go one at a time */
    pthread_cond_t fewer; /* at work */
};

/* Interactive calls that share transactions; store_postgres_joint.c. */
struct pg_joining {
    struct pg_queue queue;
    struct pg_busy busy; /* keys of the groups */
    bool waking;         /* a session is woken, and not up yet */
    unsigned at_work;    /* sessions; at most … */
    unsigned most;
};

/* store_postgres_epoch.c */
struct pg_epoch {
    pthread_mutex_t lock; /* inside the store's */
    bool known;
    char text[IDEM_EPOCH_MAX];
};

struct pg_store {
    struct idem_store base;
    const struct idem_clock *clock;
    char *conninfo, *pooled_conninfo; /* NULL: nothing is pooled */
    int64_t statement_ms, idle_ms, maintain_every_ms;
    unsigned days_ahead;
    idem_alarm_fn *alarm;
    void *alarm_with;
    atomic_uint_fast64_t alarms;
    enum idem_isolation isolation;
    struct pg_link_options link_options, pooled_options;
    unsigned n_sessions, n_started;
    struct pg_session *sessions;
    pthread_t keeper, janitor;
    bool has_keeper, has_janitor;
    int stop_fd;
    struct windows windows;
    struct lost_claims lost;
    struct pg_epoch epoch;
    atomic_uint doubts, doubts_settled; /* store_postgres_durable.h */
    atomic_uint tables; /* counted up when one of a handler's was changed */

    pthread_mutex_t lock; /* guards the rest */
    struct pg_queue queue;
    struct pg_queue grouped;   /* for PG_GROUP alone */
    struct pg_queue refused;   /* the keeper answers them */
    struct pg_busy busy;       /* keys of the batches */
    bool group_waking;         /* one of PG_GROUP is woken, or hosts, and will
                                * take what waits */
    struct pg_sharing sharing; /* of PG_STATEMENT */
    struct pg_joining joining; /* of PG_LONG, beside the queue */
    pthread_cond_t keeper_wake, janitor_wake;
    int64_t keeper_until_ns;
    bool stopping;
    unsigned up[PG_ROLES];  /* sessions that are connected */
    struct idem_error away; /* why the last one could not connect */
};

extern const struct idem_store_ops pg_store_ops;

/* When to give up an operation that is begun now: its deadline and a grace, at
 * most a statement's time and a grace. */
int64_t pg_store_until(const struct pg_store *postgres, int64_t deadline_ns,
                       int64_t grace_ns);

/* Under the store's lock: is a session connected that serves these? */
bool pg_store_serves(const struct pg_store *postgres, bool pins);

/* Under the store's lock: wake one of PG_BRIEF and PG_LONG that may serve what
 * pins, or does not; else, when none that may is up, one that refuses. False:
 * all are at work. */
bool pg_store_wake(struct pg_store *postgres, bool pins);

/* Give a ticket to a session that is free. Any thread. */
void pg_store_post(struct pg_store *postgres, struct idem_ticket *ticket,
                   enum operation operation);

/* The ticket cannot be served. */
void pg_ticket_fail(struct idem_ticket *ticket, enum idem_status status,
                    const char *reason, const char *why);

#endif
