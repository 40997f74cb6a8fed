#include "store_postgres_keeper.h"
#include "store_postgres_session.h"
#include "store_postgres_statement.h"

#include <idem/reason.h>

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#define CONNECTIONS 16
#define GROUP_CONNECTIONS 2
#define STATEMENT_CONNECTIONS 2
#define GROUP_TRANSACTIONS 2
#define FIRST_LOOK_MS 1000 /* open waits for no longer than this */

static int64_t
or_default(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

static void
print_alarm(void *with, const char *what)
{
    (void)with;
    fprintf(stderr, "idem: %s\n", what);
}

static void
take_options(struct pg_store *postgres,
             const struct idem_postgres_options *options)
{
    postgres->clock = options->clock ? options->clock : idem_clock_system();
    postgres->statement_ms = or_default(options->statement_timeout_ms, 10000);
    postgres->idle_ms = or_default(options->idle_in_transaction_ms, 10000);
    postgres->maintain_every_ms = or_default(options->maintain_every_ms, 60000);
    postgres->isolation = options->isolation;
    postgres->joining.most =
        (unsigned)or_default(options->group_transactions, GROUP_TRANSACTIONS);
    postgres->days_ahead = options->days_ahead ? options->days_ahead : 2;
    postgres->alarm = options->alarm ? options->alarm : print_alarm;
    postgres->alarm_with = options->alarm_with;
    postgres->link_options = (struct pg_link_options){
        .conninfo = postgres->conninfo,
        .clock = postgres->clock,
        .connect_timeout_ms = or_default(options->connect_timeout_ms, 5000),
        .silence_ms = postgres->statement_ms,
        .doubts = &postgres->doubts,
        .stop_fd = postgres->stop_fd,
    };
    postgres->pooled_options = postgres->link_options;
    postgres->pooled_options.conninfo = postgres->pooled_conninfo;
}

/* The first is for brief work alone, where there are more; behind them
 * are the group's, then those of statements. */
static enum pg_role
role_of(unsigned index, unsigned connections, unsigned groups)
{
    if (index >= connections + groups)
        return PG_STATEMENT;
    if (index >= connections)
        return PG_GROUP;
    return index > 0 || connections == 1 ? PG_LONG : PG_BRIEF;
}

static void
make_sessions(struct pg_store *postgres,
              const struct idem_postgres_options *options)
{
    unsigned connections =
        options->connections ? options->connections : CONNECTIONS;
    unsigned groups = options->group_connections ? options->group_connections
                                                 : GROUP_CONNECTIONS;
    unsigned statements = options->statement_connections
                              ? options->statement_connections
                              : STATEMENT_CONNECTIONS;
    unsigned n = connections + groups + statements;

    postgres->sessions = calloc(n, sizeof(struct pg_session));
    if (!postgres->sessions)
        return;
    postgres->n_sessions = n;
    for (unsigned i = 0; i < postgres->n_sessions; i++) {
        struct pg_session *session = &postgres->sessions[i];

        session->role = role_of(i, connections, groups);
        session->postgres = postgres;
        session->pooled =
            postgres->pooled_conninfo &&
            (session->role == PG_BRIEF || session->role == PG_LONG);
        session->plans.unnamed = session->pooled;
        session->link.options = session->pooled ? &postgres->pooled_options
                                                : &postgres->link_options;
        pthread_cond_init(&session->wake, NULL);
    }
}

static struct pg_store *
pg_store_new(const struct idem_postgres_options *options)
{
    struct pg_store *postgres = calloc(1, sizeof(*postgres));

    if (!postgres)
        return NULL;
    postgres->base.ops = &pg_store_ops;
    postgres->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    postgres->conninfo = strdup(options->conninfo ? options->conninfo : "");
    if (options->pooled_conninfo)
        postgres->pooled_conninfo = strdup(options->pooled_conninfo);
    pthread_mutex_init(&postgres->lock, NULL);
    pthread_mutex_init(&postgres->epoch.lock, NULL);
    pthread_cond_init(&postgres->keeper_wake, NULL);
    pthread_cond_init(&postgres->janitor_wake, NULL);
    pg_windows_init(&postgres->windows);
    pg_lost_init(&postgres->lost);
    pg_queue_init(&postgres->queue);
    pg_queue_init(&postgres->grouped);
    pg_queue_init(&postgres->refused);
    pg_sharing_init(&postgres->sharing);
    pg_queue_init(&postgres->joining.queue);
    postgres->keeper_until_ns = INT64_MAX;
    take_options(postgres, options);
    (void)idem_fail_reason(&postgres->away, IDEM_UNAVAILABLE, IDEM_STORE_AWAY,
                           "PostgreSQL: not connected yet");
    make_sessions(postgres, options);
    return postgres;
}

static enum idem_status
check_conninfo(const char *name, const char *conninfo, struct idem_error *err)
{
    char *why = NULL;
    PQconninfoOption *parsed =
        conninfo ? PQconninfoParse(conninfo, &why) : NULL;
    enum idem_status status = IDEM_OK;

    if (conninfo && !parsed) {
        if (why)
            why[strcspn(why, "\n")] = '\0';
        status = idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: %s", name,
                           why ? why : "out of memory");
    }
    PQfreemem(why);
    PQconninfoFree(parsed);
    return status;
}

static enum idem_status
check_options(const struct idem_postgres_options *options,
              struct idem_error *err)
{
    enum idem_status status;

    if ((unsigned)options->isolation > IDEM_SERIALIZABLE)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "isolation %d: there are 0 to %d",
                         (int)options->isolation, IDEM_SERIALIZABLE);
    status = check_conninfo("conninfo", options->conninfo, err);
    if (status == IDEM_OK)
        status =
            check_conninfo("pooled_conninfo", options->pooled_conninfo, err);
    return status;
}

/* Nothing waits for it, so that nobody may notice: a name in the conninfo may
 * be wrong. */
static void
tell_away(struct pg_store *postgres, const struct idem_error *why)
{
    char what[IDEM_MESSAGE_MAX + 64];

    snprintf(what, sizeof what, "%s; calls are refused until it answers",
             why->message);
    pg_keeper_alarm(postgres, what);
}

/* When the database is there now, it must be one that we know, and writable. A
 * host that does not answer may be the primary. */
static enum idem_status
look_once(struct pg_session *session, struct idem_error *err)
{
    struct pg_link_options soon = *session->link.options;
    const struct pg_link_options *usual = session->link.options;
    struct idem_error ours = {0};
    enum idem_status status;

    if (soon.connect_timeout_ms > FIRST_LOOK_MS)
        soon.connect_timeout_ms = FIRST_LOOK_MS;
    session->link.options = &soon;
    status = pg_session_open(session, &ours);
    session->link.options = usual;
    if (session->link.read_only)
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "%s: a standby or a read-only database cannot be the "
                         "authority, name the primary",
                         ours.message);
    if (status == IDEM_FAILED_PRECONDITION)
        return idem_fail(err, status, "%s", ours.message);
    if (status != IDEM_OK)
        tell_away(session->postgres, &ours);
    return IDEM_OK;
}

/* One of each way that leads there. */
static enum idem_status
look_around(struct pg_store *postgres, struct idem_error *err)
{
    enum idem_status status = IDEM_OK;
    bool pooled = !postgres->sessions[0].pooled;

    for (unsigned i = 0; i < postgres->n_sessions && status == IDEM_OK; i++) {
        struct pg_session *session = &postgres->sessions[i];

        if (session->pooled == pooled)
            continue;
        pooled = session->pooled;
        status = look_once(session, err);
    }
    return status;
}

static enum idem_status
start(struct pg_store *postgres, const struct idem_postgres_options *options,
      struct idem_error *err)
{
    enum idem_status status = IDEM_OK;

    if (!postgres->sessions || !postgres->conninfo || postgres->stop_fd < 0 ||
        (options->pooled_conninfo && !postgres->pooled_conninfo))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    status = look_around(postgres, err);
    while (status == IDEM_OK && postgres->n_started < postgres->n_sessions) {
        status = pg_session_start(&postgres->sessions[postgres->n_started],
                                  postgres, err);
        if (status == IDEM_OK)
            postgres->n_started++;
    }
    return status == IDEM_OK ? pg_keeper_start(postgres, err) : status;
}

enum idem_status
idem_postgres_open(struct idem_store **store,
                   const struct idem_postgres_options *options,
                   struct idem_error *err)
{
    static const struct idem_postgres_options defaults = {0};
    struct pg_store *postgres;
    enum idem_status status;

    if (!options)
        options = &defaults;
    status = check_options(options, err);
    if (status != IDEM_OK)
        return status;
    postgres = pg_store_new(options);
    if (!postgres)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    status = start(postgres, options, err);
    if (status != IDEM_OK)
        idem_store_free(&postgres->base);
    else
        *store = &postgres->base;
    return status;
}
