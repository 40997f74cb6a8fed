#include "store_postgres_epoch.h"
#include "store_postgres_error.h"
#include "store_postgres_pooled.h"
#include "store_postgres_session.h"
#include "store_postgres_share.h"

#include <idem/reason.h>

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

/* A session's connection: settings, what the database is. */

#define CHECK_MS 500 /* a running query notices that its client is gone */

/* $1 statement, $2 lock, $3 idle in transaction, $4 connection check; ms. A
 * commit is acknowledged when it is on disk, or later when the operator wants
 * more. */
static const char settings_sql[] =
    "SELECT set_config('statement_timeout', $1::bigint::text, false), "
    "set_config('lock_timeout', $2::bigint::text, false), "
    "set_config('idle_in_transaction_session_timeout', $3::bigint::text, "
    "false), "
    "set_config('client_connection_check_interval', $4::bigint::text, false), "
    "set_config('synchronous_commit', CASE "
    "current_setting('synchronous_commit') WHEN 'remote_apply' THEN "
    "'remote_apply' ELSE 'on' END, false), "
    "set_config('default_transaction_isolation', 'read committed', false), "
    "set_config('default_transaction_read_only', 'off', false), "
    "set_config('jit', 'off', false)";

/* Our own statements look up each key by itself: a plan that is made once, and
 * never a scan because a table was small then. Handlers' statements are planned
 * as usual: from HANDLERS_PLANS on (store_postgres_sql.c), and on sessions for
 * statements but for what SQL_SHARE_BY_KEY begins. */
#define ONE_BY_ONE                                                             \
    "SELECT set_config('plan_cache_mode', 'force_generic_plan', false), "      \
    "set_config('enable_seqscan', 'off', false)"
#define JOINS(allowed)                                                         \
    ", set_config('enable_bitmapscan', '" allowed "', false), "                \
    "set_config('enable_hashjoin', '" allowed "', false), "                    \
    "set_config('enable_mergejoin', '" allowed "', false)"

/* A batch takes a backend more memory than the 128 KiB that glibc keeps at the
 * end of its heap: without this it gives the rest back to the system behind
 * each batch, and pays for its pages anew in the next. A block that was mapped
 * and freed raises both limits: 1 MiB is no longer mapped, 2 MiB are kept
 * (mallopt(3), M_MMAP_THRESHOLD; decisions/0066). */
#define KEEPING_MEMORY ", length(repeat(' ', 1048576))"

static const char *const plans_sql[PG_ROLES] = {
    [PG_GROUP] = ONE_BY_ONE JOINS("off") KEEPING_MEMORY,
    [PG_BRIEF] = ONE_BY_ONE,
    [PG_LONG] = ONE_BY_ONE,
    [PG_STATEMENT] = "SELECT set_config('plan_cache_mode', 'auto', false), "
                     "set_config('enable_seqscan', 'on', false)" JOINS("on"),
};

/* The timeline by the log's name: after a promotion it is right at once
 * (semantics.md M11). */
static const char hello_sql[] =
    "SELECT m.version, quote_ident(n.nspname), "
    "(SELECT system_identifier FROM pg_control_system())::text || ':' || "
    "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ':' || "
    "m.generation FROM idem_meta AS m, pg_class AS c JOIN pg_namespace AS n ON "
    "n.oid = c.relnamespace WHERE c.oid = 'idem_meta'::regclass";

enum hello_column { HELLO_VERSION, HELLO_SCHEMA, HELLO_EPOCH };

static void
count_up(struct pg_session *session, const char *epoch)
{
    struct pg_store *postgres = session->postgres;

    pthread_mutex_lock(&postgres->lock);
    postgres->up[session->role]++;
    session->counted = true;
    pg_epoch_note(postgres, session->pooled ? NULL : epoch);
    pthread_mutex_unlock(&postgres->lock);
}

void
pg_session_close(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;

    pthread_mutex_lock(&postgres->lock);
    if (session->counted)
        postgres->up[session->role]--;
    session->counted = false;
    session->soiled = false;
    pg_epoch_note(postgres, NULL);
    pthread_mutex_unlock(&postgres->lock);
    pg_link_close(&session->link);
    pg_statements_fini(&session->statements);
    pg_plans_clear(&session->plans);
}

static enum idem_status
check_version(int64_t version, struct idem_error *err)
{
    if (version == POSTGRES_SCHEMA_VERSION)
        return IDEM_OK;
    return idem_fail(
        err, IDEM_FAILED_PRECONDITION,
        "the database has schema %" PRId64 ", this library needs %d: %s",
        version, POSTGRES_SCHEMA_VERSION,
        version < POSTGRES_SCHEMA_VERSION ? "run idemctl migrate"
                                          : "it is older than the database");
}

static enum idem_status
read_hello(struct pg_session *session, const struct pg_query *hello,
           struct idem_error *err)
{
    enum idem_status status;
    char epoch[IDEM_EPOCH_MAX];
    struct idem_bytes text;

    if (strcmp(pg_query_sqlstate(hello), "42P01") == 0)
        return check_version(0, err);
    if (!pg_query_ok(hello))
        return pg_fail_result(err, hello->result);
    status = check_version(
        pg_query_rows(hello) ? pg_value_int(hello->result, HELLO_VERSION) : 0,
        err);
    if (status != IDEM_OK)
        return status;
    if (!pg_statements_init(&session->statements,
                            PQgetvalue(hello->result, 0, HELLO_SCHEMA)))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (session->pooled)
        status = pg_pooled_check(session, err);
    if (status != IDEM_OK)
        return status;
    text = pg_value_bytes(hello->result, HELLO_EPOCH);
    snprintf(epoch, sizeof(epoch), "%.*s", (int)text.size,
             (const char *)text.data);
    count_up(session, epoch);
    return IDEM_OK;
}

static void
settings_of(struct pg_arguments *settings, const struct pg_session *session)
{
    const struct pg_store *postgres = session->postgres;
    bool shares = session->role == PG_STATEMENT;

    pg_arguments_int(settings, shares ? pg_share_statement_ms(postgres)
                                      : postgres->statement_ms);
    pg_arguments_int(settings, shares ? SHARE_LOCK_MS : 0);
    pg_arguments_int(settings, postgres->idle_ms);
    pg_arguments_int(settings, CHECK_MS);
}

/* Settings that last, where the connection is ours. */
static enum idem_status
set_up(struct pg_session *session, struct idem_error *err)
{
    struct pg_arguments settings = {0};
    struct pg_query queries[] = {
        {.text = settings_sql, .arguments = &settings},
        {.text = plans_sql[session->role]},
    };
    enum idem_status status = IDEM_OK;

    if (session->pooled)
        return IDEM_OK;
    settings_of(&settings, session);
    if (pg_link_run(&session->link, queries, 2, session->until_ns) != PG_OK)
        status = idem_fail_reason(err, IDEM_UNAVAILABLE, IDEM_STORE_AWAY,
                                  "PostgreSQL: the connection is lost");
    for (int i = 0; i < 2 && status == IDEM_OK; i++)
        if (!pg_query_ok(&queries[i]))
            status = pg_fail_result(err, queries[i].result);
    pg_queries_clear(queries, 2);
    return status;
}

static enum idem_status
say_hello(struct pg_session *session, struct idem_error *err)
{
    struct pg_query hello = {.text = hello_sql};
    enum idem_status status = set_up(session, err);

    if (status != IDEM_OK)
        return status;
    if (pg_link_run(&session->link, &hello, 1, session->until_ns) != PG_OK)
        status = idem_fail_reason(err, IDEM_UNAVAILABLE, IDEM_STORE_AWAY,
                                  "PostgreSQL: the connection is lost");
    else
        status = read_hello(session, &hello, err);
    pg_queries_clear(&hello, 1);
    return status;
}

enum idem_status
pg_session_open(struct pg_session *session, struct idem_error *err)
{
    const struct pg_store *postgres = session->postgres;
    struct idem_error ours = {0};
    enum idem_status status;

    pg_session_close(session);
    session->tables = atomic_load(&postgres->tables);
    session->until_ns = postgres->clock->monotonic_ns(postgres->clock) +
                        session->link.options->connect_timeout_ms * 1000000;
    status = pg_link_open(&session->link, &ours);
    if (status == IDEM_OK)
        status = say_hello(session, &ours);
    if (status == IDEM_OK)
        return IDEM_OK;
    pg_session_close(session);
    return idem_fail_reason(err, status,
                            status == IDEM_UNAVAILABLE ? IDEM_STORE_AWAY : "",
                            "%s", ours.message);
}

enum pg_end
pg_session_try(struct pg_session *session, struct pg_query *queries, unsigned n)
{
    enum pg_end end = session->pooled ? pg_pooled_run(session, queries, n)
                                      : pg_link_run(&session->link, queries, n,
                                                    session->until_ns);

    if (end != PG_OK)
        pg_session_close(session);
    return end;
}

enum pg_end
pg_session_run(struct pg_session *session, struct pg_query *queries, unsigned n)
{
    enum pg_end end = pg_session_try(session, queries, n);

    if (end != PG_OK)
        pg_queries_clear(queries, n);
    return end;
}

struct pg_query
pg_session_query(const struct pg_session *session, enum statement statement,
                 bool opaque, const struct pg_arguments *arguments)
{
    int twin = opaque && statement >= SQL_OPAQUE ? 1 : 0;
    const struct statements *statements = &session->statements;
    struct pg_query query = {.text = statements->texts[statement][twin],
                             .arguments = arguments};

    if (session->pooled)
        return query;
    query.name = statements->names[statement][twin];
    query.prepared = &statements->prepared[2 * statement + twin];
    return query;
}

struct pg_query
pg_text_query(const char *text)
{
    return (struct pg_query){.text = text};
}
