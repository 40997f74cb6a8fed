#include "support.h"

#include "child.h"
#include "postgres_inside.h"

#include <stdio.h>

#define PATIENCE_MS 60000

static void
copy_primary(const struct postgres *primary, const struct postgres *standby)
{
    const struct child_options options = {.user = postgres_user(),
                                          .log = standby->log};
    char bin[POSTGRES_PATH_SIZE], from[200];

    snprintf(from, sizeof(from),
             "host=127.0.0.1 port=%u user=idem application_name=standby",
             primary->port);
    child_run(&options, (const char *const[]){
                            postgres_program("pg_basebackup", bin, sizeof(bin)),
                            "-D", standby->data, "-d", from, "-R", "-X",
                            "stream", "-c", "fast", "--no-sync", NULL});
}

struct postgres *
postgres_standby(struct postgres *primary, const char *settings)
{
    const struct postgres_options options = {.durable = true,
                                             .settings = settings};
    struct postgres *standby = postgres_prepare();

    copy_primary(primary, standby);
    postgres_write_conf(standby, &options);
    postgres_launch(standby);
    if (!postgres_wait(primary, PATIENCE_MS,
                       "SELECT count(*) FROM pg_stat_replication WHERE "
                       "application_name = 'standby' AND state = 'streaming'"))
        child_show(standby->log);
    return standby;
}

void
postgres_promote(struct postgres *standby)
{
    const struct child_options options = {.user = postgres_user(),
                                          .log = standby->log};
    char bin[POSTGRES_PATH_SIZE];

    child_run(&options, (const char *const[]){
                            postgres_program("pg_ctl", bin, sizeof(bin)),
                            "promote", "-w", "-D", standby->data, NULL});
}

void
postgres_await_standby(struct postgres *primary)
{
    postgres_sql(primary,
                 "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    postgres_sql(primary, "SELECT pg_reload_conf()::int");
    assert_true(postgres_wait(primary, PATIENCE_MS,
                              "SELECT count(*) FROM pg_stat_replication WHERE "
                              "sync_state = 'sync'"));
}

void
postgres_conninfo_of(const struct postgres *first,
                     const struct postgres *second, char conninfo[160])
{
    snprintf(conninfo, 160,
             "host=127.0.0.1,127.0.0.1 port=%u,%u user=idem dbname=postgres",
             first->port, second->port);
}
