#ifndef STORE_POSTGRES_LINK_H
#define STORE_POSTGRES_LINK_H

#include <stdatomic.h>

#include <idem/clock.h>
#include <idem/status.h>

#include "store_postgres_arguments.h"

/* One connection to PostgreSQL that never waits past a time: connect, send some
 * statements in one round trip, collect their results. One thread at a time. */

struct pg_conn;
struct pg_result;

struct pg_link_options {
    const char *conninfo;
    const struct idem_clock *clock;
    int64_t connect_timeout_ms;
    int64_t silence_ms;  /* the kernel gives up on a peer that is silent */
    atomic_uint *doubts; /* counted up by each commit that was not seen by its
                          * standby; NULL: none */
    int stop_fd;         /* readable: do not connect any more; -1: none */
};

struct pg_link {
    const struct pg_link_options *options;
    struct pg_conn *conn; /* NULL: down */
    bool broken;          /* to be closed before its next use */
    bool read_only;       /* each host was there and would not take writes */
    bool doubtful_sync;   /* a commit was not seen by its standby */
    unsigned collected;   /* statements whose results are all there */
};

enum pg_end {
    PG_OK,   /* every statement has its result, be it an error */
    PG_LOST, /* the connection is gone: what was sent may have been done */
    PG_LATE, /* no answer in time; the link is closed, so as above */
};

struct pg_values;

/* A statement of a round trip. */
struct pg_query {
    const char *name; /* a prepared statement; NULL: text is run as it is */
    const char *text; /* with a name: prepare it under that name … */
    bool *prepared;   /* … when that is false, and then run it; set when it is
                       * prepared. NULL: prepare, and no more */
    const struct pg_arguments *arguments; /* NULL: none */
    const struct pg_values *values; /* a handler's instead; result in text */
    struct pg_result *result;       /* binary; NULL: none came */
    struct pg_result *refused;      /* why it could not be prepared, until it
                                     * is the result */
    unsigned preparing; /* results of preparing it that are still to come */
};

/* To the primary only. Ends within connect_timeout_ms, but for the name
 * look-up of a host. UNAVAILABLE with libpq's words. */
enum idem_status pg_link_open(struct pg_link *link, struct idem_error *err)
    IDEM_MUST_CHECK;
void pg_link_close(struct pg_link *link);
bool pg_link_is_up(const struct pg_link *link);

/**
 * Send the statements in one round trip and collect their results. After an
 * error the rest are not run (PGRES_PIPELINE_ABORTED). Without a BEGIN among
 * them they are one transaction, committed when this returns PG_OK and none
 * has failed. The link is closed unless PG_OK.
 *
 * @param until_ns  monotonic
 */
enum pg_end pg_link_run(struct pg_link *link, struct pg_query *queries,
                        unsigned n, int64_t until_ns) IDEM_MUST_CHECK;

/* Send one statement by itself, outside a pipeline; pg_link_wait gives its
 * results. */
bool pg_link_send_one(struct pg_link *link, const struct pg_query *query)
    IDEM_MUST_CHECK;

/* The two halves of pg_link_run, for who does something else when it is late.
 * Neither closes; after PG_LATE, collecting goes on where it was. */
bool pg_link_send(struct pg_link *link, struct pg_query *queries, unsigned n)
    IDEM_MUST_CHECK;
enum pg_end pg_link_collect(struct pg_link *link, struct pg_query *queries,
                            unsigned n, int64_t until_ns) IDEM_MUST_CHECK;

/* Wait for the next result of what was sent, which *result receives; NULL at
 * the statement's end. Does not close. */
enum pg_end pg_link_wait(struct pg_link *link, int64_t until_ns,
                         struct pg_result **result) IDEM_MUST_CHECK;

/* Free the results. */
void pg_queries_clear(struct pg_query *queries, unsigned n);

/* Did it run without an error? */
bool pg_query_ok(const struct pg_query *query);

/* "23505"; "" without an error, or when the error has none. */
const char *pg_query_sqlstate(const struct pg_query *query);

/* Rows that it returned, or changed. */
long pg_query_rows(const struct pg_query *query);

#endif
