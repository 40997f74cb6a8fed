#include "journal_site.h"

#include "books.h"
#include "child.h"
#include "journal.h"
#include "loopback.h"

#include <idem/key.h>
#include <idem/postgres.h>
#include <idem/session.h>

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_MS 200 /* of journal.proto */

/* --- Its servers --- */

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s", err->message);
}

void
journal_site_serve(struct journal_site *site, unsigned i, const char *variable,
                   const char *value)
{
    const struct child_options options = {.log = site->log[i]};
    const char *words[] = {JOURNAL_SERVER,
                           site->address[i],
                           site->pushes,
                           "sqlite",
                           site->books,
                           NULL,
                           NULL};

    if (site->postgres) {
        words[3] = "postgres";
        words[4] = postgres_conninfo(site->postgres);
        words[5] = redis_url(site->redis);
    }
    if (variable)
        setenv(variable, value, 1);
    site->servers[i] = child_serve(&options, words);
    if (variable)
        unsetenv(variable);
    if (!variable && site->servers[i] == 0) {
        child_show(site->log[i]);
        fail_msg("the server does not start");
    }
}

static int
set_up(void **state, bool on_postgres)
{
    struct journal_site *site = calloc(1, sizeof *site);
    struct idem_error err;

    assert_non_null(site);
    site->checker = checker_new();
    tempdir_open(&site->dir);
    tempdir_file(&site->dir, "books", site->books, sizeof site->books);
    tempdir_file(&site->dir, "pushes", site->pushes, sizeof site->pushes);
    tempdir_file(&site->dir, "points", site->points, sizeof site->points);
    tempdir_file(&site->dir, "log0", site->log[0], sizeof site->log[0]);
    tempdir_file(&site->dir, "log1", site->log[1], sizeof site->log[1]);
    for (unsigned i = 0; i < 2; i++)
        snprintf(site->address[i], sizeof site->address[i],
                 "tcp://127.0.0.1:%u", loopback_free_port());
    if (on_postgres) {
        site->postgres = postgres_start(NULL);
        site->redis = redis_start(NULL);
        must(idem_postgres_migrate(postgres_conninfo(site->postgres), NULL,
                                   &err),
             &err);
        postgres_sql(site->postgres, JOURNAL_SCHEMA_POSTGRES);
    }
    *state = site;
    return 0;
}

int
journal_site_on_sqlite(void **state)
{
    return set_up(state, false);
}

int
journal_site_on_postgres(void **state)
{
    return set_up(state, true);
}

int
journal_site_down(void **state)
{
    struct journal_site *site = *state;

    for (unsigned i = 0; i < 2; i++)
        child_stop(site->servers[i], SIGKILL);
    redis_free(site->redis);
    postgres_free(site->postgres);
    tempdir_close(&site->dir);
    checker_free(site->checker);
    free(site);
    return 0;
}

/* --- What is in the books --- */

void
journal_site_check(struct journal_site *site)
{
    if (site->postgres)
        checker_read_postgres(site->checker, postgres_conninfo(site->postgres),
                              JOURNAL_KEYS);
    else
        checker_read_sqlite(site->checker, site->books, JOURNAL_KEYS);
    checker_read_log(site->checker, site->pushes);
    assert_int_equal(checker_run(site->checker, LEASE_MS, checker_print, NULL),
                     0);
}

int64_t
journal_site_ask(const struct journal_site *site, const char *format, ...)
{
    char sql[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    return site->postgres ? postgres_sql(site->postgres, "%s", sql)
                          : books_ask(site->books, sql);
}

void
assert_journal_rows(const struct journal_site *site, const char *session,
                    int64_t n, bool ended)
{
    assert_int_equal(
        journal_site_ask(
            site, "SELECT count(*) FROM journal WHERE session = '%s'", session),
        n + ended);
    assert_int_equal(
        journal_site_ask(site,
                         "SELECT count(DISTINCT number) FROM journal WHERE "
                         "session = '%s' AND number BETWEEN 1 AND %lld",
                         session, (long long)n),
        n);
    assert_int_equal(
        journal_site_ask(
            site,
            "SELECT count(*) FROM journal a JOIN journal b ON a.session = "
            "b.session AND a.id < b.id AND (a.number > b.number AND b.number "
            "> 0 OR a.number = 0) WHERE a.session = '%s'",
            session),
        0);
}

void
assert_journal_lines(const struct journal_site *site, const char *session,
                     int64_t n)
{
    FILE *file = fopen(site->pushes, "r");
    char key[IDEM_KEY_MAX + 1], of[IDEM_SESSION_MAX];
    int64_t last = 0, number, sequence;
    long long read;
    bool ended = false;

    assert_non_null(file);
    while (fscanf(file, "%255s %lld", key, &read) == 2) {
        assert_true(idem_session_split(idem_bytes_of(key), of, &sequence));
        if (strcmp(of, session) != 0)
            continue;
        number = read ? read : n + 1;
        assert_int_equal(sequence, number);
        assert_true(number == last || number == last + 1);
        last = number;
        ended = read == 0;
    }
    fclose(file);
    assert_true(ended);
}
