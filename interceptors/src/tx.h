#ifndef TX_H
#define TX_H

#include <idem/store.h>
#include <idem/tx.h>

#include "rows.h"
#include "statements.h"

/* The transaction that a handler writes in, whichever authority it is of. An
 * authority embeds it as the first member of its own and fills it. One thread
 * at a time: the handler's, between claim and complete. */

struct tx_ops {
    /* Run one statement: text that is no transaction command (tx.c has looked)
     * in a transaction in which no statement has failed yet. As idem_sql. */
    enum idem_status (*exec)(struct idem_tx *tx, struct idem_rows **rows,
                             struct idem_error *err, const char *sql,
                             const struct idem_value *values, size_t n);

    /* The connection; NULL when it is of the other authority. */
    struct pg_conn *(*postgres)(struct idem_tx *tx);
    struct sqlite3 *(*sqlite)(struct idem_tx *tx);
};

struct idem_tx {
    const struct tx_ops *ops;
    struct idem_arena *arena; /* the handler's: rows live here */
    const struct idem_clock *clock;
    int64_t deadline_ns; /* monotonic; INT64_MAX: none */

    /* The first failure of a statement; IDEM_OK: none. While it is set every
     * statement fails with it and complete with status OK must not commit
     * (B074): FAILED, or CONFLICT when it is ABORTED. */
    enum idem_status failed;
};

struct once;

/* What a handler's context knows of the store: the once interceptor fills it
 * and puts it into the context's slot before the handler runs. */
struct tx_slot {
    struct idem_store *store; /* NULL: the server has none */
    struct idem_tx *tx; /* TRANSACTION: the ticket's; NONE: opened at first
                         * use; else NULL */
    enum idem_mode mode;
    bool grouped; /* TRANSACTION: the connection may be shared, also where this
                   * call happens to be alone */
    struct idem_arena *arena; /* the handler's */
    int64_t deadline_ns;      /* the call's */
    struct once *once;        /* LEASED: who let the handler through … */
    const struct idem_ticket *claimed; /* … by this claim */
    bool begun;                        /* LEASED: a step is marked */
    struct idem_statements statements; /* STATEMENT: the first half adds … */
    const struct idem_rows *const *rows; /* … the second reads; NULL before */
    bool states;                         /* STATEMENT */
};

/* After the handler: end the read transaction of mode NONE, if one was opened.
 * Blocks for no longer than a statement. */
void tx_slot_end(struct tx_slot *slot);

#endif
