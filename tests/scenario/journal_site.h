#ifndef JOURNAL_SITE_H
#define JOURNAL_SITE_H

#include "support.h"

#include "checker.h"
#include "postgres.h"
#include "redis.h"
#include "tempdir.h"

#include <idem/base.h>

/* Two servers of journal.proto that may be killed, on one authority, and what
 * is in its books. */

struct journal_site {
    struct tempdir dir;
    char books[160], pushes[160], points[160], log[2][160], address[2][64];
    struct postgres *postgres; /* NULL: sqlite */
    struct redis *redis;
    pid_t servers[2];
    struct checker *checker; /* of all keys that are written */
};

/* cmocka fixtures: no server yet. */
int journal_site_on_sqlite(void **state);
int journal_site_on_postgres(void **state);
int journal_site_down(void **state);

/* Start a server with a variable in its environment, for its faults: it may die
 * before it listens. NULL: none, and it must listen. */
void journal_site_serve(struct journal_site *site, unsigned i,
                        const char *variable, const char *value);

/* I1 to I10, of all keys that the checker was told. */
void journal_site_check(struct journal_site *site);

/* The first value of a query. */
int64_t journal_site_ask(const struct journal_site *site, const char *format,
                         ...) IDEM_PRINTF(2, 3);

/* Of the session: 1 to n have a row each, in order, and the end's is behind
 * them. */
void assert_journal_rows(const struct journal_site *site, const char *session,
                         int64_t n, bool ended);

/* In a file of another system: 1 to n, in order, and the end; a number that was
 * begun when its server died is there twice, with the same key. */
void assert_journal_lines(const struct journal_site *site, const char *session,
                          int64_t n);

#endif
