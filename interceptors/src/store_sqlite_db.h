#ifndef STORE_SQLITE_DB_H
#define STORE_SQLITE_DB_H

#include <idem/status.h>

struct sqlite3;
struct sqlite3_stmt;
struct sqlite_statement;

/* One connection to the file, with the statements that were used on it. One
 * thread at a time. */
struct sqlite_db {
    struct sqlite3 *handle;
    struct sqlite_statement *statements; /* a hash by text, oldest first */
};

/* Open for writing, or for reading only; WAL, every commit on the disk. */
enum idem_status sqlite_db_open(struct sqlite_db *db, const char *path,
                                bool reader, int64_t busy_ms,
                                struct idem_error *err) IDEM_MUST_CHECK;
void sqlite_db_close(struct sqlite_db *db);

/* How long a statement waits for another process's lock from here. */
void sqlite_db_set_busy(struct sqlite_db *db, int64_t busy_ms);

/* Run statements without parameters and rows. */
enum idem_status sqlite_db_run(struct sqlite_db *db, const char *sql,
                               struct idem_error *err) IDEM_MUST_CHECK;

/* One statement, compiled at its first use, without values bound; the caller
 * gives it back with sqlite_db_done. NULL and err filled: text that is not one
 * statement. */
struct sqlite3_stmt *sqlite_db_use(struct sqlite_db *db, const char *sql,
                                   struct idem_error *err) IDEM_MUST_CHECK;
void sqlite_db_done(struct sqlite3_stmt *statement);

/* Bind a view; an empty one is empty, not NULL. */
void sqlite_bind_bytes(struct sqlite3_stmt *statement, int at,
                       struct idem_bytes bytes);

/* Step a statement that gives no rows, give it back, say how many rows it
 * changed; -1 and err filled: it failed. */
int sqlite_db_change(struct sqlite_db *db, struct sqlite3_stmt *statement,
                     struct idem_error *err);

/* Reset the statements that somebody is in the middle of: they would hold the
 * connection at what the file was when they began. */
void sqlite_db_end_statements(struct sqlite_db *db);

/* End the transaction without a trace, if one is open. */
void sqlite_db_rollback(struct sqlite_db *db);
bool sqlite_db_in_transaction(const struct sqlite_db *db);

/* The connection's last failure in our words; the reason is a constraint's name
 * where there is one. */
enum idem_status sqlite_db_fail(struct sqlite_db *db, struct idem_error *err);

#endif
