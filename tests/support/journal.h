#ifndef JOURNAL_H
#define JOURNAL_H

#include <pthread.h>

#include "journal.idem.h"

/* The service of journal.proto. */

#define JOURNAL_SCHEMA                                                         \
    "CREATE TABLE IF NOT EXISTS journal (id INTEGER PRIMARY KEY "              \
    "AUTOINCREMENT, key TEXT NOT NULL, session TEXT NOT NULL, "                \
    "number BIGINT NOT NULL, word TEXT NOT NULL)"
#define JOURNAL_SCHEMA_POSTGRES                                                \
    "CREATE TABLE IF NOT EXISTS journal (id BIGSERIAL, key TEXT NOT NULL, "    \
    "session TEXT NOT NULL, number BIGINT NOT NULL, word TEXT NOT NULL)"
#define JOURNAL_KEYS "SELECT key FROM journal"

/* What register gets as user. Handlers run on many threads. */
struct journal {
    const char *push_log; /* the file; NULL: Push fails */
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    unsigned runs;         /* handlers of messages that have run */
    unsigned left_failing; /* so many fail from here, after their effect … */
    enum idem_status fail_with; /* … with this status */
    bool held;                  /* they stop after their effect … */
    unsigned inside;            /* … so many do */
};

extern const struct journal_handlers journal_handlers;

void journal_init(struct journal *journal, const char *push_log);
void journal_fini(struct journal *journal);

/* The next so many handlers fail after their effect. */
void journal_fail(struct journal *journal, unsigned times,
                  enum idem_status status);

/* Hold handlers after their effect, before they return; let them go. */
void journal_hold(struct journal *journal);
void journal_open(struct journal *journal);

/* Wait until so many are inside; until so many have run. Fail the test after
 * 10 s. */
void journal_await_inside(struct journal *journal, unsigned inside);
void journal_await_runs(struct journal *journal, unsigned runs);

unsigned journal_runs(struct journal *journal);

#endif
