#include "doubt_site.h"

#include "child.h"
#include "effects.h"
#include "loopback.h"

#include <idem/postgres.h>
#include <idem/standard.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LEASE_MS 900 /* of effects.proto */

/* An AddReply: number 41, amount 7. */
static const uint8_t found_out[] = {0x08, 41, 0x10, 7};

void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

static void
name_files(struct site *site)
{
    FILE *file;

    tempdir_open(&site->dir);
    tempdir_file(&site->dir, "books", site->books, sizeof site->books);
    tempdir_file(&site->dir, "pushes", site->push_log, sizeof site->push_log);
    tempdir_file(&site->dir, "log", site->log, sizeof site->log);
    tempdir_file(&site->dir, "reply", site->reply, sizeof site->reply);
    file = fopen(site->reply, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(found_out, 1, sizeof found_out, file),
                     sizeof found_out);
    fclose(file);
}

static void
name_place(struct site *site)
{
    if (site->postgres)
        snprintf(site->place, sizeof site->place, "--postgres '%s'",
                 postgres_conninfo(site->postgres));
    else
        snprintf(site->place, sizeof site->place, "--sqlite %s", site->books);
}

static int
set_up(void **state, bool on_postgres)
{
    struct site *site = calloc(1, sizeof *site);
    struct idem_error err;

    name_files(site);
    snprintf(site->address, sizeof site->address, "tcp://127.0.0.1:%u",
             loopback_free_port());
    if (on_postgres) {
        site->postgres = postgres_start(NULL);
        must(idem_postgres_migrate(postgres_conninfo(site->postgres), NULL,
                                   &err),
             &err);
        postgres_strict(site->postgres);
        postgres_sql(site->postgres, EFFECTS_SCHEMA);
    }
    name_place(site);
    site->checker = checker_new();
    must(idem_client_open(&site->channel, site->address, NULL, &err), &err);
    *state = site;
    return 0;
}

int
site_on_sqlite(void **state)
{
    return set_up(state, false);
}

int
site_on_postgres(void **state)
{
    return set_up(state, true);
}

void
site_tell(struct site *site, enum checker_runs runs, int64_t began_ns,
          const struct idem_outcome *outcome, uint64_t reply)
{
    const struct idem_clock *clock = idem_clock_system();
    const struct checker_call call = {
        .key = outcome->key,
        .began_ns = began_ns,
        .ended_ns = clock->monotonic_ns(clock),
        .status = outcome->status,
        .effect = outcome->effect,
        .final = outcome->final,
        .reason = outcome->reason,
        .reply = reply,
    };

    checker_key(site->checker, outcome->key, runs, INT64_MAX);
    checker_call(site->checker, &call);
}

static void
judge(struct site *site)
{
    if (site->postgres)
        checker_read_postgres(site->checker, postgres_conninfo(site->postgres),
                              EFFECTS_KEYS);
    else if (access(site->books, F_OK) == 0)
        checker_read_sqlite(site->checker, site->books, EFFECTS_KEYS);
    checker_read_log(site->checker, site->push_log);
    assert_int_equal(checker_run(site->checker, LEASE_MS, checker_print, NULL),
                     0);
    checker_free(site->checker);
}

int
site_down(void **state)
{
    struct site *site = *state;

    idem_channel_close(site->channel);
    child_stop(site->server, SIGKILL);
    judge(site);
    postgres_free(site->postgres);
    tempdir_close(&site->dir);
    free(site);
    return 0;
}

void
site_start(struct site *site, const char *fault)
{
    const char *const words[] = {
        EFFECTS_SERVER,
        site->address,
        site->push_log,
        site->postgres ? "postgres" : "sqlite",
        site->postgres ? postgres_conninfo(site->postgres) : site->books,
        NULL};
    const struct child_options options = {.log = site->log};

    setenv("EFFECTS_FEW", "", 1);
    if (fault)
        setenv("IDEM_FAULT", fault, 1);
    site->server = child_serve(&options, words);
    unsetenv("IDEM_FAULT");
    if (!site->server) {
        child_show(site->log);
        fail_msg("the server does not listen");
    }
}

bool
site_is_dead(void *with)
{
    const struct site *site = with;

    return !child_alive(site->server);
}
