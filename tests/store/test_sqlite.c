#include "support.h"

#include "fake_clock.h"
#include "suite.h"
#include "tempdir.h"
#include "tx.h"

#include <idem/sqlite.h>
#include <sqlite3.h>

/* The suite on the embedded authority, by a clock that the tests move. */

struct world {
    struct fake_clock clock;
    struct tempdir folder;
    char path[TEMPDIR_MAX + 32];
};

static struct idem_store *
open_store(void *with)
{
    struct world *world = with;
    struct idem_sqlite_options options = {
        .path = world->path,
        .schema = "CREATE TABLE IF NOT EXISTS effects (key TEXT,"
                  " amount INTEGER CHECK (amount > -1000),"
                  " id INTEGER UNIQUE, body BLOB)",
        .clock = &world->clock.clock,
    };
    struct idem_store *store = NULL;
    struct idem_error err;

    if (idem_sqlite_open(&store, &options, &err) != IDEM_OK)
        fail_msg("idem_sqlite_open: %s", err.message);
    return store;
}

static void
pass_ms(void *with, int64_t ms)
{
    struct world *world = with;

    fake_clock_advance_ms(&world->clock, ms);
}

static int64_t
wall_ms(void *with)
{
    struct world *world = with;

    return world->clock.clock.wall_ms(&world->clock.clock);
}

static void
run_raw(struct idem_tx *tx, const char *sql)
{
    assert_int_equal(sqlite3_exec(tx->ops->sqlite(tx), sql, NULL, NULL, NULL),
                     SQLITE_OK);
}

static void
commit_raw(struct idem_tx *tx)
{
    run_raw(tx, "COMMIT");
}

static void
roll_back_raw(struct idem_tx *tx)
{
    run_raw(tx, "ROLLBACK");
}

int
main(void)
{
    static const char *const before[] = {
        "claim.before",
        "claim.written",
        "claim.after",
        "complete.before",
        "complete.released",
        "complete.written",
        NULL,
    };
    static const char *const after[] = {"complete.after", NULL};
    struct world world;
    struct suite_factory factory = {
        .name = "sqlite",
        .with = &world,
        .open = open_store,
        .pass_ms = pass_ms,
        .wall_ms = wall_ms,
        .commit_raw = commit_raw,
        .roll_back_raw = roll_back_raw,
        .clock = &world.clock.clock,
        .lease_ms = 10000,
        .before_commit = before,
        .after_commit = after,
    };
    int failed;

    fake_clock_init(&world.clock);
    tempdir_open(&world.folder);
    tempdir_file(&world.folder, "store.db", world.path, sizeof world.path);
    failed = suite_run(&factory);
    tempdir_close(&world.folder);
    fake_clock_fini(&world.clock);
    return failed;
}
