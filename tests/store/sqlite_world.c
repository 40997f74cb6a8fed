#include "sqlite_world.h"

#include "tx.h"

#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdlib.h>

static struct idem_store *
open_store(void *with)
{
    struct sqlite_world *world = with;
    struct idem_sqlite_options options = {
        .path = world->path,
        .schema = "CREATE TABLE IF NOT EXISTS effects (key TEXT,"
                  " amount INTEGER CHECK (amount > -1000),"
                  " id INTEGER UNIQUE, body BLOB);"
                  "CREATE TABLE IF NOT EXISTS late (id INTEGER REFERENCES"
                  " effects (id) DEFERRABLE INITIALLY DEFERRED)",
        .busy_ms = world->busy_ms,
        .maintain_every_ms = world->maintain_every_ms,
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
    struct sqlite_world *world = with;

    fake_clock_advance_ms(&world->clock, ms);
}

static int64_t
wall_ms(void *with)
{
    struct sqlite_world *world = with;

    return world->clock.clock.wall_ms(&world->clock.clock);
}

static void
tell(void *with, struct checker *checker)
{
    struct sqlite_world *world = with;

    checker_read_sqlite(checker, world->path, SUITE_EFFECTS);
}

void
sqlite_world_run_raw(struct idem_tx *tx, const char *sql)
{
    assert_int_equal(sqlite3_exec(tx->ops->sqlite(tx), sql, NULL, NULL, NULL),
                     SQLITE_OK);
}

static void
commit_raw(struct idem_tx *tx)
{
    sqlite_world_run_raw(tx, "COMMIT");
}

static void
roll_back_raw(struct idem_tx *tx)
{
    sqlite_world_run_raw(tx, "ROLLBACK");
}

void
sqlite_world_open(struct sqlite_world *world)
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
    static const char *const before_run[] = {"run.before", "run.written", NULL};
    static const char *const after_run[] = {"run.after", NULL};

    *world = (struct sqlite_world){
        .maintain_every_ms = -1,
        .factory = {.name = "sqlite",
                    .with = world,
                    .open = open_store,
                    .pass_ms = pass_ms,
                    .wall_ms = wall_ms,
                    .tell = tell,
                    .commit_raw = commit_raw,
                    .roll_back_raw = roll_back_raw,
                    .clock = &world->clock.clock,
                    .lease_ms = 10000,
                    .before_commit = before,
                    .after_commit = after,
                    .lost_answer = "complete.after",
                    .before_run_commit = before_run,
                    .after_run_commit = after_run,
                    .lost_run = "run.after"},
        .suite = {.factory = &world->factory, .minted = true},
    };
    fake_clock_init(&world->clock);
    tempdir_open(&world->folder);
    tempdir_file(&world->folder, "store.db", world->path, sizeof world->path);
}

void
sqlite_world_close(struct sqlite_world *world)
{
    sqlite_world_stop(world);
    tempdir_close(&world->folder);
    fake_clock_fini(&world->clock);
}

void
sqlite_world_start(struct sqlite_world *world)
{
    world->suite.store = open_store(world);
}

void
sqlite_world_stop(struct sqlite_world *world)
{
    idem_store_free(world->suite.store);
    world->suite.store = NULL;
}

int64_t
sqlite_world_number(const struct sqlite_world *world, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t number;

    assert_int_equal(sqlite3_open(world->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

int
sqlite_world_set_up(void **state)
{
    struct sqlite_world *world = calloc(1, sizeof *world);

    sqlite_world_open(world);
    sqlite_world_start(world);
    *state = world;
    return 0;
}

int
sqlite_world_tear_down(void **state)
{
    struct sqlite_world *world = *state;

    sqlite_world_close(world);
    free(world);
    return 0;
}
