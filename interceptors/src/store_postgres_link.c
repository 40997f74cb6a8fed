#include "store_postgres_link.h"

#include "store_postgres_values.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)

static int64_t
now_ns(const struct pg_link *link)
{
    const struct idem_clock *clock = link->options->clock;

    return clock->monotonic_ns(clock);
}

/* Wait for the socket. False: it is too late, or time to stop. */
static bool
wait_socket(const struct pg_link *link, short events, int64_t until_ns,
            int stop)
{
    struct pollfd fds[2] = {{PQsocket(link->conn), events, 0},
                            {stop, POLLIN, 0}};

    for (;;) {
        int64_t left_ns = until_ns - now_ns(link);
        int64_t left_ms = left_ns / NS_PER_MS + 1;

        if (left_ns <= 0)
            return false;
        if (left_ms > 60000)
            left_ms = 60000;
        if (poll(fds, 2, (int)left_ms) > 0)
            return fds[1].revents == 0;
    }
}

static void
note_doubt(struct pg_link *link)
{
    link->doubtful_sync = true;
    if (link->options->doubts)
        atomic_fetch_add(link->options->doubts, 1);
}

/* A handler's NOTICE is not ours to print. A synchronous standby that was given
 * up by a cancel is told by a warning only (dedup.md 7). */
static void
take_notice(void *with, const PGresult *notice)
{
    struct pg_link *link = with;
    const char *text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);

    if (text && strstr(text, "synchronous replication"))
        note_doubt(link);
}

static PGconn *
start(const struct pg_link_options *options)
{
    char silence[32];
    const char *const keywords[] = {"dbname",
                                    "target_session_attrs",
                                    "keepalives",
                                    "keepalives_idle",
                                    "keepalives_interval",
                                    "keepalives_count",
                                    "tcp_user_timeout",
                                    "client_encoding",
                                    "fallback_application_name",
                                    NULL};
    const char *const values[] = {options->conninfo ? options->conninfo : "",
                                  "read-write",
                                  "1",
                                  "10",
                                  "5",
                                  "3",
                                  silence,
                                  "UTF8",
                                  "idem",
                                  NULL};

    snprintf(silence, sizeof(silence), "%" PRId64, options->silence_ms);
    return PQconnectStartParams(keywords, values, 1);
}

static enum idem_status
fail_open(struct pg_link *link, struct idem_error *err, const char *why)
{
    char text[IDEM_MESSAGE_MAX];

    snprintf(text, sizeof(text), "%s", why);
    text[strcspn(text, "\n")] = '\0';
    pg_link_close(link);
    return idem_fail(err, IDEM_UNAVAILABLE, "PostgreSQL: %s", text);
}

/* libpq says one line for each host that it tried. */
static bool
all_read_only(const char *lines)
{
    unsigned n = 0;

    for (; *lines; n++) {
        const char *end = strchrnul(lines, '\n');
        const char *word = strstr(lines, "session is read-only");

        if (!word || word > end)
            return false;
        lines = *end ? end + 1 : end;
    }
    return n > 0;
}

enum idem_status
pg_link_open(struct pg_link *link, struct idem_error *err)
{
    int64_t until_ns =
        now_ns(link) + link->options->connect_timeout_ms * NS_PER_MS;
    PostgresPollingStatusType step = PGRES_POLLING_WRITING;

    pg_link_close(link);
    link->conn = start(link->options);
    if (!link->conn)
        return fail_open(link, err, "out of memory");
    while (PQstatus(link->conn) != CONNECTION_BAD &&
           step != PGRES_POLLING_FAILED && step != PGRES_POLLING_OK) {
        short events = step == PGRES_POLLING_READING ? POLLIN : POLLOUT;

        if (!wait_socket(link, events, until_ns, link->options->stop_fd))
            return fail_open(link, err, "no connection in time");
        step = PQconnectPoll(link->conn);
    }
    link->read_only =
        step != PGRES_POLLING_OK && all_read_only(PQerrorMessage(link->conn));
    if (step != PGRES_POLLING_OK)
        return fail_open(link, err, PQerrorMessage(link->conn));
    PQsetNoticeReceiver(link->conn, take_notice, link);
    return IDEM_OK;
}

void
pg_link_close(struct pg_link *link)
{
    if (link->conn)
        PQfinish(link->conn);
    link->conn = NULL;
    link->broken = false;
    link->doubtful_sync = false;
}

bool
pg_link_is_up(const struct pg_link *link)
{
    return link->conn && !link->broken && PQstatus(link->conn) == CONNECTION_OK;
}

enum pg_end
pg_link_wait(struct pg_link *link, int64_t until_ns, PGresult **result)
{
    PGconn *conn = link->conn;
    int pending;

    *result = NULL;
    while ((pending = PQflush(conn)) > 0 || PQisBusy(conn)) {
        short events = (short)(POLLIN | (pending > 0 ? POLLOUT : 0));

        if (pending < 0)
            break;
        if (!wait_socket(link, events, until_ns, -1))
            return PG_LATE;
        if (!PQconsumeInput(conn))
            break;
    }
    *result = PQgetResult(conn);
    return PQstatus(conn) == CONNECTION_OK ? PG_OK : PG_LOST;
}

static bool
send_values(PGconn *conn, const struct pg_query *query)
{
    const struct pg_values *with = query->values;

    if (query->name && query->text)
        return PQsendPrepare(conn, query->name, query->text, with->n,
                             with->types) == 1;
    if (query->name)
        return PQsendQueryPrepared(conn, query->name, with->n, with->values,
                                   with->sizes, with->formats, 0) == 1;
    return PQsendQueryParams(conn, query->text, with->n, with->types,
                             with->values, with->sizes, with->formats, 0) == 1;
}

static bool
send_prepare(PGconn *conn, const struct pg_query *query)
{
    return PQsendPrepare(conn, query->name, query->text, 0, NULL) == 1;
}

static bool
send_query(PGconn *conn, const struct pg_query *query)
{
    static const struct pg_arguments none = {0};
    const struct pg_arguments *with =
        query->arguments ? query->arguments : &none;

    if (query->values)
        return send_values(conn, query);
    if (query->name && query->text && !query->prepared)
        return send_prepare(conn, query);
    if (query->name)
        return PQsendQueryPrepared(conn, query->name, with->n, with->values,
                                   with->sizes, with->formats, 1) == 1;
    return PQsendQueryParams(conn, query->text, with->n, NULL, with->values,
                             with->sizes, with->formats, 1) == 1;
}

bool
pg_link_send_one(struct pg_link *link, const struct pg_query *query)
{
    PQsetnonblocking(link->conn, 1);
    return send_query(link->conn, query);
}

bool
pg_link_send(struct pg_link *link, struct pg_query *queries, unsigned n)
{
    PGconn *conn = link->conn;

    link->collected = 0;
    for (unsigned i = 0; i < n; i++)
        queries[i].result = queries[i].refused = NULL;
    if (!pg_link_is_up(link))
        return false;
    PQsetnonblocking(conn, 1);
    if (!PQenterPipelineMode(conn))
        return false;
    for (unsigned i = 0; i < n; i++) {
        bool prepares = queries[i].prepared && !*queries[i].prepared;

        queries[i].preparing = prepares ? 2 : 0;
        if ((prepares && !send_prepare(conn, &queries[i])) ||
            !send_query(conn, &queries[i]))
            return false;
    }
    return PQpipelineSync(conn) == 1;
}

/* What cannot be prepared says why, and is not run. */
static enum pg_end
collect_preparing(struct pg_link *link, struct pg_query *query,
                  int64_t until_ns)
{
    PGresult *result;
    enum pg_end end = pg_link_wait(link, until_ns, &result);

    if (end != PG_OK) {
        query->result = result;
        return end;
    }
    query->preparing--;
    if (!result)
        return PG_OK;
    *query->prepared = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (*query->prepared)
        PQclear(result);
    else
        query->refused = result;
    return PG_OK;
}

/* A statement gives its result, then NULL. */
static enum pg_end
collect_one(struct pg_link *link, struct pg_query *query, int64_t until_ns)
{
    PGresult *end_of_it;
    enum pg_end end = PG_OK;

    while (query->preparing > 0 && end == PG_OK)
        end = collect_preparing(link, query, until_ns);
    if (end == PG_OK && !query->result)
        end = pg_link_wait(link, until_ns, &query->result);
    if (end != PG_OK)
        return end;
    if (query->refused) {
        PQclear(query->result);
        query->result = query->refused;
        query->refused = NULL;
    }
    end = pg_link_wait(link, until_ns, &end_of_it);
    PQclear(end_of_it);
    return end;
}

enum pg_end
pg_link_collect(struct pg_link *link, struct pg_query *queries, unsigned n,
                int64_t until_ns)
{
    PGresult *result;
    enum pg_end end = PG_OK;

    while (link->collected < n) {
        end = collect_one(link, &queries[link->collected], until_ns);
        if (end != PG_OK)
            return end;
        link->collected++;
    }
    end = pg_link_wait(link, until_ns, &result);
    if (end == PG_OK && (PQresultStatus(result) != PGRES_PIPELINE_SYNC ||
                         !PQexitPipelineMode(link->conn)))
        end = PG_LOST;
    PQclear(result);
    return end;
}

enum pg_end
pg_link_run(struct pg_link *link, struct pg_query *queries, unsigned n,
            int64_t until_ns)
{
    enum pg_end end = PG_LOST;

    if (pg_link_send(link, queries, n))
        end = pg_link_collect(link, queries, n, until_ns);
    if (end != PG_OK)
        pg_link_close(link);
    return end;
}

void
pg_queries_clear(struct pg_query *queries, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        PQclear(queries[i].result);
        PQclear(queries[i].refused);
        queries[i].result = queries[i].refused = NULL;
    }
}

bool
pg_query_ok(const struct pg_query *query)
{
    ExecStatusType status = PQresultStatus(query->result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

const char *
pg_query_sqlstate(const struct pg_query *query)
{
    const char *state = NULL;

    if (query->result && !pg_query_ok(query))
        state = PQresultErrorField(query->result, PG_DIAG_SQLSTATE);
    return state ? state : "";
}

long
pg_query_rows(const struct pg_query *query)
{
    if (PQresultStatus(query->result) == PGRES_TUPLES_OK)
        return PQntuples(query->result);
    return strtol(PQcmdTuples(query->result), NULL, 10);
}
