#include "crash_site.h"

#include "child.h"
#include "effects.h"
#include "loopback.h"

#include <idem/postgres.h>
#include <idem/standard.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define LEASE_MS 900 /* of effects.proto */

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s", err->message);
}

static void
prepare(struct crash_site *site, bool on_postgres)
{
    struct idem_error err;

    tempdir_open(&site->dir);
    tempdir_file(&site->dir, "books", site->books, sizeof(site->books));
    tempdir_file(&site->dir, "pushes", site->push_log, sizeof(site->push_log));
    tempdir_file(&site->dir, "points", site->points, sizeof(site->points));
    tempdir_file(&site->dir, "log", site->log, sizeof(site->log));
    snprintf(site->address, sizeof(site->address), "tcp://127.0.0.1:%u",
             loopback_free_port());
    if (!on_postgres)
        return;
    site->postgres = postgres_start(NULL);
    site->redis = redis_start(NULL);
    must(idem_postgres_migrate(postgres_conninfo(site->postgres), NULL, &err),
         &err);
    postgres_strict(site->postgres);
    postgres_sql(site->postgres, EFFECTS_SCHEMA);
}

static int
set_up(void **state, bool on_postgres)
{
    struct crash_site *site = calloc(1, sizeof(*site));
    struct idem_error err;

    prepare(site, on_postgres);
    site->checker = checker_new();
    must(idem_client_open(&site->channel, site->address, NULL, &err), &err);
    *state = site;
    return 0;
}

int
crash_site_on_sqlite(void **state)
{
    return set_up(state, false);
}

int
crash_site_on_postgres_and_redis(void **state)
{
    return set_up(state, true);
}

int
crash_site_down(void **state)
{
    struct crash_site *site = *state;

    idem_channel_close(site->channel);
    child_stop(site->server, SIGKILL);
    redis_free(site->redis);
    postgres_free(site->postgres);
    tempdir_close(&site->dir);
    checker_free(site->checker);
    free(site);
    return 0;
}

bool
crash_site_is_dead(void *with)
{
    const struct crash_site *site = with;

    return !child_alive(site->server);
}

void
crash_site_start(struct crash_site *site, const char *variable,
                 const char *value)
{
    const char *words[] = {
        EFFECTS_SERVER, site->address, site->push_log, "sqlite", site->books,
        NULL,           NULL};
    const struct child_options options = {.log = site->log};

    if (site->postgres) {
        words[3] = "postgres";
        words[4] = postgres_conninfo(site->postgres);
        words[5] = redis_url(site->redis);
    }
    setenv("EFFECTS_FEW", "", 1);
    if (variable)
        setenv(variable, value, 1);
    site->server = child_serve(&options, words);
    if (variable)
        unsetenv(variable);
    if (!variable && !site->server) {
        child_show(site->log);
        fail_msg("the server does not listen");
    }
}

void
crash_site_check(struct crash_site *site)
{
    if (site->postgres)
        checker_read_postgres(site->checker, postgres_conninfo(site->postgres),
                              EFFECTS_KEYS);
    else
        checker_read_sqlite(site->checker, site->books, EFFECTS_KEYS);
    checker_read_log(site->checker, site->push_log);
    assert_int_equal(checker_run(site->checker, LEASE_MS, checker_print, NULL),
                     0);
}
