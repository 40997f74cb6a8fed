#ifndef SUITE_H
#define SUITE_H

#include "checker.h"

#include <idem/store.h>
#include <idem/tx.h>

/* One set of tests that every authority passes: what <idem/store.h> says. The
 * authority's own test makes a factory and calls suite_run from main. */

struct suite_factory {
    const char *name; /* of the authority; its fault points begin with it */
    void *with;       /* given to every function below */

    /* Open a store on the one database that all of the suite uses, which has
     * the table effects (key TEXT, amount BIGINT CHECK (amount > -1000),
     * id BIGINT UNIQUE, body BLOB or BYTEA), and no keys of the suite. Called
     * again and again, also in a forked child. Fails the test on failure. */
    struct idem_store *(*open)(void *with);

    /* Let the authority's wall clock and the leases go on. */
    void (*pass_ms)(void *with, int64_t ms);

    /* The authority's wall clock. */
    int64_t (*wall_ms)(void *with);

    /* Tell the checker all records and all rows of effects. */
    void (*tell)(void *with, struct checker *checker);

    /* COMMIT and ROLLBACK by the connection itself, as a handler must not. */
    void (*commit_raw)(struct idem_tx *tx);
    void (*roll_back_raw)(struct idem_tx *tx);

    const struct idem_clock *clock; /* of the tickets' deadlines */
    int64_t lease_ms;               /* long enough for a few operations */

    /* Fault points of a TRANSACTION's way, without the name, NULL at the end: a
     * crash there leaves nothing, or leaves the effect and the record. */
    const char *const *before_commit;
    const char *const *after_commit;

    /* … with the action error: the commit stands, its answer is lost. */
    const char *lost_answer;

    /* The same of run. */
    const char *const *before_run_commit;
    const char *const *after_run_commit;
    const char *lost_run;
};

/* Runs all; the number of tests that failed. Call it while the process has one
 * thread: the crash tests fork. */
int suite_run(const struct suite_factory *factory);

#define SUITE_EFFECTS "SELECT key FROM effects"

#endif
