#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

#include <pthread.h>

#include "store_sqlite_db.h"
#include "tx.h"

#include <idem/sqlite.h>

/* The embedded authority's inside. Three kinds of threads touch it:
 *   the writer   one thread with the only connection that writes; while a
 *                transaction is open the connection is its handler's
 *   the looker   one thread that answers look, on a reading connection
 *   handlers     begin_read and end_read, on a reading connection each
 * They share the queues and the list of idle readers, each under its lock. */

enum sqlite_op {
    SQLITE_OP_CLAIM,
    SQLITE_OP_COMPLETE,
    SQLITE_OP_RELEASE,
    SQLITE_OP_DOUBT,
    SQLITE_OP_RENEW,
    SQLITE_OP_MARK,
    SQLITE_OP_ABANDON,
    SQLITE_OP_LOOK,
    SQLITE_OP_SETTLE,
    SQLITE_OP_WATERMARK,
    SQLITE_OP_ACKNOWLEDGE,
    SQLITE_OP_RUN,
    SQLITE_OP_MAINTAIN,
};

/* A handler's transaction, or a read. */
struct sqlite_tx {
    struct idem_tx base;
    struct sqlite_db *db;
    bool gone; /* a failure made sqlite roll it back by itself */
    bool lent; /* the handler got the connection itself */
};

/* First in, first out, linked by ticket->next. Zeroed is empty. */
struct sqlite_queue {
    struct idem_ticket *first, *last;
};

struct sqlite_writer {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct sqlite_queue decided;      /* their verdict is there: say it */
    struct sqlite_queue grouped;      /* share one commit */
    struct sqlite_queue transactions; /* claims of mode TRANSACTION */
    struct idem_ticket *open;         /* whose transaction is open */
    struct idem_ticket *ending;       /* … and is to be ended */
    bool transaction_next;            /* whose turn it is */
    int64_t first_deadline_ns;        /* no ticket waits for an earlier one */
    int64_t maintain_at_ns;           /* INT64_MAX: never */
    bool stop;
};

struct sqlite_looker {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct sqlite_queue asked;
    bool stop;
};

struct sqlite_reader {
    struct sqlite_tx tx;
    struct sqlite_db db;
    struct sqlite_reader *next;
};

struct sqlite_store {
    struct idem_store base;
    const struct idem_clock *clock;
    char *path;
    int64_t busy_ms;
    unsigned days_ahead;
    int64_t maintain_every_ms; /* -1: never by itself */
    char savepoint[64]; /* "idem_h_…", not to be guessed by a handler */
    char epoch[33];     /* of this opening of the file */

    struct sqlite_db db; /* the writer's */
    struct sqlite_tx tx; /* the one that is open */
    struct sqlite_writer writer;
    struct sqlite_looker looker;

    pthread_mutex_t readers_lock;
    struct sqlite_reader *readers; /* idle */
};

/* Queues. */
void sqlite_queue_push(struct sqlite_queue *queue, struct idem_ticket *ticket);
struct idem_ticket *sqlite_queue_pop(struct sqlite_queue *queue);

/* The ticket's verdict is FAILED. */
void sqlite_ticket_fail(struct idem_ticket *ticket, enum idem_status status,
                        const char *why);

/* store_sqlite_op.c: make the ticket's move, inside a transaction of the
 * writer. False: SQL failed, ticket->error says why, nothing of the transaction
 * may stay. */
bool sqlite_op_run(struct sqlite_store *store, struct idem_ticket *ticket)
    IDEM_MUST_CHECK;

/* Its claim alone: MINE leaves a record that says RUNNING. */
bool sqlite_op_claim(struct sqlite_store *store, struct idem_ticket *ticket,
                     int64_t now_ms) IDEM_MUST_CHECK;

/* store_sqlite_statement.c: claim, statements, answer, record of transaction
 * STATEMENT, inside a transaction of the writer. As sqlite_op_run. */
bool sqlite_statement_run(struct sqlite_store *store,
                          struct idem_ticket *ticket, int64_t now_ms)
    IDEM_MUST_CHECK;

/* A fault point of the ticket's operation, "sqlite.<op>.<step>": true when the
 * step shall fail. */
bool sqlite_op_fault(const struct idem_ticket *ticket, const char *step);

/* store_sqlite_open.c: begin a transaction for writing, waiting for another
 * process no longer than the options and the deadline say. */
bool sqlite_begin(struct sqlite_store *store, int64_t deadline_ns,
                  struct idem_error *err) IDEM_MUST_CHECK;

/* Claim in a transaction that stays open when the verdict is MINE. */
void sqlite_transaction_begin(struct sqlite_store *store,
                              struct idem_ticket *ticket);

/* store_sqlite_end.c: complete or release the open transaction. */
void sqlite_transaction_end(struct sqlite_store *store,
                            struct idem_ticket *ticket);

/* store_sqlite_writer.c: the thread. */
enum idem_status sqlite_writer_start(struct sqlite_store *store,
                                     struct idem_error *err) IDEM_MUST_CHECK;
void sqlite_writer_submit(struct sqlite_store *store,
                          struct idem_ticket *ticket, enum sqlite_op op);
bool sqlite_writer_is_open(struct sqlite_store *store,
                           const struct idem_record_id *id);
void sqlite_writer_stop(struct sqlite_store *store);

/* store_sqlite_group.c: a queue of operations under one commit. */
void sqlite_group_run(struct sqlite_store *store, struct sqlite_queue *queue);

/* store_sqlite_look.c: the thread. */
enum idem_status sqlite_looker_start(struct sqlite_store *store,
                                     struct idem_error *err) IDEM_MUST_CHECK;
void sqlite_looker_submit(struct sqlite_store *store,
                          struct idem_ticket *ticket, enum sqlite_op op);
void sqlite_looker_stop(struct sqlite_store *store);

/* store_sqlite_read.c: reading transactions. */
struct idem_tx *sqlite_begin_read(struct idem_store *store,
                                  struct idem_arena *arena, int64_t deadline_ns,
                                  struct idem_error *err);
void sqlite_end_read(struct idem_store *store, struct idem_tx *tx);
struct sqlite_reader *sqlite_reader_take(struct sqlite_store *store,
                                         struct idem_error *err);
void sqlite_reader_give(struct sqlite_store *store,
                        struct sqlite_reader *reader);
void sqlite_readers_close(struct sqlite_store *store);

/* store_sqlite_tx.c: the handler's statements. */
void sqlite_tx_init(struct sqlite_tx *tx, struct sqlite_db *db,
                    const struct idem_clock *clock, struct idem_arena *arena,
                    int64_t deadline_ns);
void sqlite_tx_fini(struct sqlite_tx *tx);

/* store_sqlite_watermark.c: what <idem/store.h> says of sessions. False: SQL
 * failed. */
bool sqlite_watermark(struct sqlite_db *db, struct idem_ticket *ticket)
    IDEM_MUST_CHECK;
bool sqlite_acknowledge(struct sqlite_db *db, struct idem_ticket *ticket)
    IDEM_MUST_CHECK;

/* store_sqlite_schema.c: bring the file's tables to what this library knows,
 * then run the service's own. */
enum idem_status sqlite_schema_apply(struct sqlite_db *db, const char *service,
                                     struct idem_error *err) IDEM_MUST_CHECK;

/* store_sqlite_days.c: one bounded step of maintenance inside a transaction.
 * More: there is work for another one. */
bool sqlite_days_maintain(struct sqlite_db *db, int64_t now_ms,
                          unsigned days_ahead, bool *more,
                          struct idem_error *err) IDEM_MUST_CHECK;

/* The same in a transaction of its own. */
enum idem_status sqlite_days_run(struct sqlite_store *store, bool *more,
                                 struct idem_error *err) IDEM_MUST_CHECK;

/* maintain's ticket. */
struct sqlite_maintenance {
    struct idem_ticket base;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool more;
    bool answered;
};

#endif
