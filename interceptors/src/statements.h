#ifndef STATEMENTS_H
#define STATEMENTS_H

#include <idem/statement.h>

/* What one call of transaction: STATEMENT wants to run. In the call's arena;
 * whoever holds the call. */

struct handler_statement {
    const char *sql;
    const struct idem_value *values;
    size_t n_values;
};

struct idem_statements {
    struct idem_arena *arena;
    struct handler_statement *at;
    unsigned n, room;
    bool alone; /* one of them changes what others in its transaction meet */
    bool reply_first;
    struct idem_error error; /* of the first that cannot be run */
};

/* Forget what an earlier run has added. */
void statements_begin(struct idem_statements *statements,
                      struct idem_arena *arena);

/* Does the second half do without rows? */
bool statements_need_no_rows(const struct idem_statements *statements);

/* What it is given then. NULL: the call's memory is full. */
const struct idem_rows *const *
statements_no_rows(const struct idem_statements *statements) IDEM_MUST_CHECK;

/* Run them one after another in a transaction of the call's own. NULL: one has
 * failed, or memory is out; failed says why. Else rows[i] is of statement i. */
const struct idem_rows *const *
statements_run(const struct idem_statements *statements, struct idem_tx *tx,
               struct idem_error *failed) IDEM_MUST_CHECK;

#endif
