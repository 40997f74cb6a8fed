#ifndef STORE_POSTGRES_SESSION_H
#define STORE_POSTGRES_SESSION_H

#include "store_postgres.h"

/* A thread with a connection that serves the store's tickets. */

/* INTERNAL: no thread. */
enum idem_status pg_session_start(struct pg_session *session,
                                  struct pg_store *postgres,
                                  struct idem_error *err) IDEM_MUST_CHECK;

/* After postgres->stopping is set and stop_fd is readable. */
void pg_session_join(struct pg_session *session);

/* Connect again; a failure is noted in the store and puts off the next time.
 * True: it is up. */
bool pg_session_reconnect(struct pg_session *session);

/* A prepared statement of a handler is of a table that was changed: every
 * session forgets what it has prepared, by its next connection. */
void pg_session_outgrow(struct pg_session *session);

/* Is it connected, and knows the tables? Closed when it does not. Between
 * transactions. */
bool pg_session_is_ready(struct pg_session *session);

/* While it is down: it may not connect yet, and so may refuse. */
bool pg_session_must_wait(const struct pg_session *session);

/* While a handler has the transaction: sleep until it is to be ended. NULL: a
 * read is over, or the store is freed under it. */
struct idem_ticket *pg_session_stay(struct pg_session *session);

/* What a handler left in the session is not for the next one. */
void pg_session_clean(struct pg_session *session);

/* FAILED, with the words of the last failure to connect. */
void pg_session_refuse(struct pg_session *session, struct idem_ticket *ticket);

/* Connect, look at what is there, prepare. FAILED_PRECONDITION: another
 * schema. */
enum idem_status pg_session_open(struct pg_session *session,
                                 struct idem_error *err) IDEM_MUST_CHECK;
void pg_session_close(struct pg_session *session);

/* Run statements until session->until_ns. When the connection is lost the
 * session is closed, and no result is left. */
enum pg_end pg_session_run(struct pg_session *session, struct pg_query *queries,
                           unsigned n) IDEM_MUST_CHECK;

/* As above, but the results that came before the end are kept. */
enum pg_end pg_session_try(struct pg_session *session, struct pg_query *queries,
                           unsigned n) IDEM_MUST_CHECK;

/* One of the store's statements; prepared, where that lasts. */
struct pg_query pg_session_query(const struct pg_session *session,
                                 enum statement statement, bool opaque,
                                 const struct pg_arguments *arguments);
struct pg_query pg_text_query(const char *text);

#endif
