#include "journal_world.h"

#include "books.h"
#include "postgres.h"

#include <idem/key.h>
#include <idem/postgres.h>
#include <idem/sqlite.h>

#include <stdarg.h>
#include <stdio.h>

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s", err->message);
}

/* --- Its life --- */

static struct idem_store *
open_store(struct journal_world *world)
{
    const struct idem_sqlite_options sqlite = {.path = world->books,
                                               .schema = JOURNAL_SCHEMA};
    const struct idem_postgres_options postgres = {
        .conninfo = world->postgres ? postgres_conninfo(world->postgres) : "",
        .connections = POSTGRES_FEW_CONNECTIONS};
    struct idem_store *store;
    struct idem_error err;

    if (world->postgres)
        must(idem_postgres_open(&store, &postgres, &err), &err);
    else
        must(idem_sqlite_open(&store, &sqlite, &err), &err);
    return store;
}

struct idem_server *
journal_world_serve(struct journal_world *world,
                    const struct journal_world_options *options)
{
    struct idem_server *server;
    struct idem_error err;

    must(idem_server_open(&server, open_store(world), &options->server,
                          &options->once, &err),
         &err);
    must(journal_register(server, &journal_handlers, &world->journal, &err),
         &err);
    must(idem_server_listen(server, "tcp://127.0.0.1:0", &err), &err);
    must(idem_server_start(server, &err), &err);
    return server;
}

void
journal_world_open(struct journal_world *world,
                   const struct journal_world_options *options)
{
    const struct idem_channel_options channel = {.connect_backoff_ms = 10};
    struct idem_error err;

    *world = (struct journal_world){.postgres = NULL};
    tempdir_open(&world->dir);
    tempdir_file(&world->dir, "books", world->books, sizeof world->books);
    tempdir_file(&world->dir, "pushes", world->push_log,
                 sizeof world->push_log);
    if (options->postgres) {
        world->postgres = postgres_start(NULL);
        must(idem_postgres_migrate(postgres_conninfo(world->postgres), NULL,
                                   &err),
             &err);
        postgres_sql(world->postgres, JOURNAL_SCHEMA_POSTGRES);
    }
    journal_init(&world->journal, world->push_log);
    world->checker = checker_new();
    checker_pass_over_others(world->checker);
    world->server = journal_world_serve(world, options);
    world->address = idem_server_address(world->server, 0);
    must(idem_client_open(&world->channel, world->address, &channel, &err),
         &err);
}

static void
check(struct journal_world *world)
{
    if (world->postgres)
        checker_read_postgres(world->checker,
                              postgres_conninfo(world->postgres), JOURNAL_KEYS);
    else
        checker_read_sqlite(world->checker, world->books, JOURNAL_KEYS);
    assert_int_equal(checker_run(world->checker, 0, checker_print, NULL), 0);
}

void
journal_world_close(struct journal_world *world)
{
    idem_channel_close(world->channel);
    idem_server_free(world->server);
    check(world);
    checker_free(world->checker);
    journal_fini(&world->journal);
    postgres_free(world->postgres);
    tempdir_close(&world->dir);
}

/* --- What is in the books --- */

int64_t
journal_world_sql(struct journal_world *world, const char *format, ...)
{
    char sql[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    return world->postgres ? postgres_sql(world->postgres, "%s", sql)
                           : books_ask(world->books, sql);
}

const journal_entry *
journal_entry_of(int64_t number)
{
    static _Thread_local journal_entry entry;

    entry = (journal_entry)JOURNAL_ENTRY_INIT;
    entry.number = number;
    return &entry;
}

const char *
journal_session_of(const char *key)
{
    static _Thread_local char session[IDEM_SESSION_MAX];
    int64_t number;

    assert_true(idem_session_split(idem_bytes_of(key), session, &number));
    return session;
}

void
assert_journal(struct journal_world *world, const char *key, int64_t n,
               bool ended)
{
    const char *session = journal_session_of(key);

    checker_session(world->checker, session, CHECKER_RUN_ONCE, n + ended,
                    n + ended);
    assert_int_equal(journal_world_sql(world,
                                       "SELECT count(*) FROM journal WHERE "
                                       "session = '%s'",
                                       session),
                     n + ended);
    assert_int_equal(
        journal_world_sql(world,
                          "SELECT count(DISTINCT number) FROM journal WHERE "
                          "session = '%s' AND number BETWEEN 1 AND %lld",
                          session, (long long)n),
        n);
    assert_int_equal(
        journal_world_sql(world,
                          "SELECT count(*) FROM journal a JOIN journal b ON "
                          "a.session = b.session AND a.id < b.id AND "
                          "(a.number > b.number AND b.number > 0 OR "
                          "a.number = 0) WHERE a.session = '%s'",
                          session),
        0);
}
