#ifndef IDEM_STATEMENT_H
#define IDEM_STATEMENT_H

#include <idem/tx.h>

/* transaction: STATEMENT. The handler does not run its SQL, it says what is to
 * be run, in two halves that the generated table has slots for:
 *
 *   charge_statements  from the request: the statements, with their parameters
 *   charge_reply       from their rows: the reply, or a final "no"
 *
 * In between many calls may travel together: one look at their keys, all of
 * their statements in order, their records, one commit. Exactly once holds as
 * in the other shapes: record and effect commit together or not at all.
 *
 * Both halves may run more than once for a call, each time from the beginning
 * (another call of the commit failed, a conflict, a lost connection), and only
 * the last run counts; so they have no effect of their own, no waiting, no
 * memory of an earlier run. The first runs on the thread that read the request,
 * the second on one of the store's while the transaction is open.
 *
 * A statement that fails answers the call as idem_sql says, and its reply half
 * does not run: a unique constraint is ALREADY_EXISTS with the constraint's
 * name as reason. Whoever wants to say it better writes ON CONFLICT DO NOTHING
 * and looks at the rows. When the reply half answers an error, what the
 * statements wrote is undone; is the error one that is recorded, its record
 * commits all the same.
 *
 *   static enum idem_status
 *   charge_statements(struct idem_context *context,
 *                     const charge_request *request,
 *                     struct idem_statements *statements)
 *   {
 *       if (request->amount <= 0)
 *           return idem_context_fail(context, IDEM_INVALID_ARGUMENT, "…");
 *       idem_statement_add(statements,
 *                          "UPDATE account SET balance = balance - $2"
 *                          " WHERE name = $1 AND balance >= $2"
 *                          " RETURNING balance",
 *                          IDEM_VALUES(idem_text(request->account),
 *                                      idem_int(request->amount)));
 *       return IDEM_OK;
 *   }
 *
 *   static enum idem_status
 *   charge_reply(struct idem_context *context, const charge_request *request,
 *                const struct idem_rows *const *rows, charge_reply *reply)
 *   {
 *       if (idem_rows_count(rows[0]) == 0)
 *           return idem_context_fail(context, IDEM_FAILED_PRECONDITION, "…");
 *       reply->balance = idem_rows_int(rows[0], 0, 0);
 *       return IDEM_OK;
 *   }
 */
struct idem_statements;

IDEM_BEGIN_DECLS

/**
 * Add one statement to those that the call runs, in order.
 *
 * The text is not copied, and neither is what the values point to: literals,
 * fields of the request, memory of idem_context_alloc. Texts are few and stay
 * the same, for each is prepared once a connection.
 *
 * What cannot be run (a transaction command, a setting of the session) fails
 * the call with INTERNAL when it is to be run, whatever the half returns. A
 * call that sets something for its transaction (SET LOCAL) has one of its own.
 */
IDEM_API void idem_statement_add(struct idem_statements *statements,
                                 const char *sql,
                                 const struct idem_value *values, size_t n);

/**
 * Say that the reply does not depend on the rows: its half is asked before the
 * statements run, as often as it must be, and each of its rows counts 0. On
 * PostgreSQL the record then travels with the statements, which saves a call
 * that is alone a round trip. A statement that fails answers the call all the
 * same, whatever the half has said.
 */
IDEM_API void idem_statements_reply_first(struct idem_statements *statements);

/* For generated code: where the first half adds, and what the second one
 * reads. NULL rows: it is the first one's turn. */
IDEM_API struct idem_statements *
idem_context_statements(struct idem_context *context);
IDEM_API const struct idem_rows *const *
idem_context_rows(struct idem_context *context);

IDEM_END_DECLS

#endif
