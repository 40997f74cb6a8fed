#ifndef SQL_H
#define SQL_H

#include <idem/base.h>

/* Would the text begin, end or split a transaction? Looks at its first words,
 * past comments, and past empty statements. That there is one statement only is
 * for the database to say. Text that the two databases read differently (a
 * comment in a comment) counts when either reading does. */
bool sql_is_transaction_command(const char *sql);

/* Would the statement, as PostgreSQL reads it, leave something in the session
 * that outlives its transaction: a setting, a lock, a temporary table? Rather
 * once too often: a name in the text counts wherever it stands. */
bool sql_changes_session(const char *sql);

/* … something that whoever has the transaction next would meet: that, or a
 * setting of the transaction's? */
bool sql_changes_transaction(const char *sql);

/* Would the statement, as sqlite reads it, change the connection that all calls
 * share: a PRAGMA that sets, another file, a temporary table? */
bool sql_changes_connection(const char *sql);

/* Nothing but blanks, comments and semicolons, as sqlite reads it. */
bool sql_is_blank(const char *sql);

#endif
