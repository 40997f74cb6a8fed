#ifndef JOURNAL_WORLD_H
#define JOURNAL_WORLD_H

#include "support.h"

#include "checker.h"
#include "journal.h"
#include "postgres.h"
#include "tempdir.h"

#include <idem/standard.h>

/* A server with the service of journal.proto on an authority, and a channel to
 * it. */
struct journal_world {
    struct tempdir dir;
    char books[TEMPDIR_MAX + 32], push_log[TEMPDIR_MAX + 32];
    struct postgres *postgres; /* NULL: sqlite */
    struct journal journal;
    struct checker *checker; /* of what assert_journal was told */
    struct idem_server *server;
    struct idem_interceptor *once;
    struct idem_channel *channel;
    const char *address;
};

struct journal_world_options {
    bool postgres;
    struct idem_server_options server;
    struct idem_once_options once;
};

void journal_world_open(struct journal_world *world,
                        const struct journal_world_options *options);

/* Fails the test when what was asserted of the journal broke a rule of the
 * checker since. */
void journal_world_close(struct journal_world *world);

/* Another server on the same authority; the caller frees it. */
struct idem_server *
journal_world_serve(struct journal_world *world,
                    const struct journal_world_options *options);

/* The first value of a query. */
int64_t journal_world_sql(struct journal_world *world, const char *format, ...)
    IDEM_PRINTF(2, 3);

/* The entry of that number; one a thread. */
const journal_entry *journal_entry_of(int64_t number);

/* The session of a key. */
const char *journal_session_of(const char *key);

/* The entries 1 to n of the session have a row each, in order, and nothing else
 * has, but for the end's behind them if it is told to be there. */
void assert_journal(struct journal_world *world, const char *key, int64_t n,
                    bool ended);

#endif
