#include "sqlite_world.h"

#include "fault.h"
#include "tx.h"

#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

/* What the embedded authority does beside the suite: its one writer, its file,
 * its transactions. */

static void
open_call(struct sqlite_world *world, struct suite_call *call,
          enum idem_mode mode)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key(&world->suite, key);
    call_open(call, &world->suite, key, mode, 1);
}

static void
open_mine(struct sqlite_world *world, struct suite_call *call,
          enum idem_mode mode)
{
    open_call(world, call, mode);
    assert_int_equal(call_claim(call), IDEM_VERDICT_MINE);
}

/* Nobody waits for a handler beyond the own deadline. */
static void
a_claim_that_waits_for_a_transaction_ends_at_its_deadline(void **state)
{
    struct sqlite_world *world = *state;
    struct idem_store *store = world->suite.store;
    struct suite_call open, waiting;

    open_mine(world, &open, IDEM_MODE_TRANSACTION);
    open_call(world, &waiting, IDEM_MODE_TRANSACTION);
    waiting.ticket.deadline_ns =
        world->clock.clock.monotonic_ns(&world->clock.clock) + 50000000;
    call_start(&waiting, store->ops->claim);
    fake_clock_await_waiter(&world->clock, waiting.ticket.deadline_ns);
    fake_clock_advance_ms(&world->clock, 50);
    assert_int_equal(call_await(&waiting), IDEM_VERDICT_FAILED);
    assert_int_equal(waiting.ticket.error.status, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(call_complete(&open, IDEM_OK, ""), IDEM_VERDICT_MINE);
    assert_int_equal(call_look(&waiting), IDEM_VERDICT_ABSENT);
    call_close(&open);
    call_close(&waiting);
}

/* B008: no time left is not the same as no end. */
static void
a_claim_without_time_left_leaves_no_record(void **state)
{
    struct suite_call call;

    open_call(*state, &call, IDEM_MODE_LEASED);
    call.ticket.deadline_ns = 0;
    assert_int_equal(call_claim(&call), IDEM_VERDICT_FAILED);
    assert_int_equal(call.ticket.error.status, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(call_look(&call), IDEM_VERDICT_ABSENT);
    call_close(&call);
}

/* A completion counts also when the caller's time is over. */
static void
a_completion_waits_past_its_deadline(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call leased, open;

    open_mine(world, &leased, IDEM_MODE_LEASED);
    open_mine(world, &open, IDEM_MODE_TRANSACTION);
    leased.ticket.deadline_ns = 0;
    leased.ticket.answer.status = IDEM_OK;
    call_start(&leased, world->suite.store->ops->complete);
    assert_int_equal(call_complete(&open, IDEM_OK, ""), IDEM_VERDICT_MINE);
    assert_int_equal(call_await(&leased), IDEM_VERDICT_MINE);
    call_close(&leased);
    call_close(&open);
}

static void
transactions_of_different_keys_run_one_after_another(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call first, second;

    open_mine(world, &first, IDEM_MODE_TRANSACTION);
    open_call(world, &second, IDEM_MODE_TRANSACTION);
    call_start(&second, world->suite.store->ops->claim);
    assert_int_equal(call_effect(&first, 1), IDEM_OK);
    assert_int_equal(call_complete(&first, IDEM_OK, ""), IDEM_VERDICT_MINE);
    assert_int_equal(call_await(&second), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&second, 1), IDEM_OK);
    assert_int_equal(call_complete(&second, IDEM_OK, ""), IDEM_VERDICT_MINE);
    call_close(&first);
    call_close(&second);
}

/* A rival that came before the transaction was open does not wait for it. */
static void
a_queued_rival_hears_running_when_the_first_begins(void **state)
{
    struct sqlite_world *world = *state;
    struct idem_store *store = world->suite.store;
    struct suite_call open, first, rival;

    open_mine(world, &open, IDEM_MODE_TRANSACTION);
    open_call(world, &first, IDEM_MODE_TRANSACTION);
    call_open(&rival, &world->suite, first.key, IDEM_MODE_TRANSACTION, 1);
    call_start(&first, store->ops->claim);
    call_start(&rival, store->ops->claim);
    assert_int_equal(call_release(&open), IDEM_VERDICT_MINE);
    assert_int_equal(call_await(&first), IDEM_VERDICT_MINE);
    assert_int_equal(call_await(&rival), IDEM_VERDICT_RUNNING);
    assert_int_equal(call_release(&first), IDEM_VERDICT_MINE);
    call_close(&open);
    call_close(&first);
    call_close(&rival);
}

#ifdef IDEM_FAULTS
/* All wait for the transaction, so that they share a commit. */
static void
one_that_cannot_be_done_does_not_take_its_group_with_it(void **state)
{
    struct sqlite_world *world = *state;
    const struct idem_store_ops *ops = world->suite.store->ops;
    struct suite_call owner, open, claims[3];

    open_mine(world, &owner, IDEM_MODE_LEASED);
    open_mine(world, &open, IDEM_MODE_TRANSACTION);
    call_start(&owner, ops->renew);
    for (int i = 0; i < 3; i++) {
        open_call(world, &claims[i], IDEM_MODE_LEASED);
        call_start(&claims[i], ops->claim);
    }
    fault_set("sqlite.renew.written:*:error");
    assert_int_equal(call_release(&open), IDEM_VERDICT_MINE);
    assert_int_equal(call_await(&owner), IDEM_VERDICT_FAILED);
    assert_int_equal(owner.ticket.error.status, IDEM_UNAVAILABLE);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call_await(&claims[i]), IDEM_VERDICT_MINE);
        call_close(&claims[i]);
    }
    fault_set(NULL);
    call_close(&owner);
    call_close(&open);
}

static void
a_completion_that_fails_can_be_repeated(void **state)
{
    struct suite_call call;

    open_mine(*state, &call, IDEM_MODE_LEASED);
    fault_set("sqlite.complete.written:1:error");
    assert_int_equal(call_complete(&call, IDEM_OK, "x"), IDEM_VERDICT_FAILED);
    assert_int_equal(call_complete(&call, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    fault_set(NULL);
    call_close(&call);
}

static void
a_transaction_that_cannot_be_recorded_leaves_nothing(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call call;

    open_mine(world, &call, IDEM_MODE_TRANSACTION);
    assert_int_equal(call_effect(&call, 1), IDEM_OK);
    fault_set("sqlite.complete.written:1:error");
    assert_int_equal(call_complete(&call, IDEM_OK, "x"), IDEM_VERDICT_FAILED);
    fault_set(NULL);
    assert_int_equal(suite_effects(&world->suite, call.key), 0);
    assert_int_equal(call_look(&call), IDEM_VERDICT_ABSENT);
    call_close(&call);
}
#endif

/* Fault 22. */
static void
a_deferred_constraint_that_fails_at_commit_leaves_nothing(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call call;

    open_mine(world, &call, IDEM_MODE_TRANSACTION);
    assert_int_equal(call_effect(&call, 1), IDEM_OK);
    assert_int_equal(idem_sql(call.ticket.tx, NULL, NULL,
                              "INSERT INTO late VALUES (404)", IDEM_NO_VALUES),
                     IDEM_OK);
    assert_int_equal(call_complete(&call, IDEM_OK, "x"), IDEM_VERDICT_FAILED);
    assert_int_equal(call.ticket.error.status, IDEM_FAILED_PRECONDITION);
    assert_int_equal(suite_effects(&world->suite, call.key), 0);
    assert_int_equal(call_look(&call), IDEM_VERDICT_ABSENT);
    call_close(&call);
}

/* sqlite rolls back by itself; the handler's final "no" is still recorded. */
static void
an_error_is_recorded_after_sqlite_rolled_back_by_itself(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call call;

    open_mine(world, &call, IDEM_MODE_TRANSACTION);
    assert_int_equal(call_effect(&call, 1), IDEM_OK);
    assert_int_equal(idem_sql(call.ticket.tx, NULL, NULL,
                              "INSERT OR ROLLBACK INTO effects (id)"
                              " VALUES (3), (3)",
                              IDEM_NO_VALUES),
                     IDEM_ALREADY_EXISTS);
    assert_int_equal(call_complete(&call, IDEM_ALREADY_EXISTS, ""),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.ticket.answer.status, IDEM_ALREADY_EXISTS);
    assert_int_equal(suite_effects(&world->suite, call.key), 0);
    call_close(&call);
}

static void
success_is_refused_after_sqlite_rolled_back_by_itself(void **state)
{
    struct suite_call call;

    open_mine(*state, &call, IDEM_MODE_TRANSACTION);
    assert_int_not_equal(idem_sql(call.ticket.tx, NULL, NULL,
                                  "INSERT OR ROLLBACK INTO effects (id)"
                                  " VALUES (3), (3)",
                                  IDEM_NO_VALUES),
                         IDEM_OK);
    assert_int_equal(call_complete(&call, IDEM_OK, ""), IDEM_VERDICT_FAILED);
    assert_int_equal(call_look(&call), IDEM_VERDICT_ABSENT);
    call_close(&call);
}

static void
a_handler_that_begins_another_transaction_is_in_doubt(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call call;

    open_mine(world, &call, IDEM_MODE_TRANSACTION);
    assert_int_equal(call_effect(&call, 1), IDEM_OK);
    sqlite_world_run_raw(call.ticket.tx, "COMMIT; BEGIN");
    assert_int_equal(call_effect(&call, 2), IDEM_OK);
    assert_int_equal(call_complete(&call, IDEM_OK, ""), IDEM_VERDICT_DOUBT);
    assert_int_equal(suite_effects(&world->suite, call.key), 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DOUBT);
    call_close(&call);
}

static void
a_statement_ends_at_the_deadline(void **state)
{
    struct sqlite_world *world = *state;
    const struct idem_clock *clock = idem_clock_system();
    struct suite_call call;

    open_mine(world, &call, IDEM_MODE_TRANSACTION);
    call.ticket.tx->clock = clock;
    call.ticket.tx->deadline_ns = clock->monotonic_ns(clock) + 20000000;
    assert_int_equal(
        idem_sql(call.ticket.tx, NULL, NULL,
                 "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1"
                 " FROM n) SELECT count(*) FROM n",
                 IDEM_NO_VALUES),
        IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    call_close(&call);
}

/* Two stores on one file are as two processes. */
static void
another_process_is_waited_for_and_then_told_of(void **state)
{
    struct sqlite_world *world = *state;
    struct suite other = world->suite;
    struct suite_call open, late;

    world->busy_ms = 10;
    other.store = world->factory.open(world);
    open_mine(world, &open, IDEM_MODE_TRANSACTION);
    call_open(&late, &other, open.key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(call_claim(&late), IDEM_VERDICT_FAILED);
    assert_int_equal(late.ticket.error.status, IDEM_UNAVAILABLE);
    assert_int_equal(call_complete(&open, IDEM_OK, "one"), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&late), IDEM_VERDICT_DONE);
    assert_text(late.ticket.answer.reply, "one");
    idem_store_free(other.store);
    call_close(&open);
    call_close(&late);
}

/* What reads on holds the writer back at what the file was then, and nothing
 * can be written once another process has. */
static void
a_statement_that_a_handler_leaves_is_ended(void **state)
{
    struct sqlite_world *world = *state;
    struct suite other = world->suite;
    struct suite_call call;
    struct sqlite3 *handle;
    sqlite3_stmt *left = NULL;
    char key[IDEM_KEY_MAX + 1];

    other.store = world->factory.open(world);
    open_mine(world, &call, IDEM_MODE_TRANSACTION);
    handle = call.ticket.tx->ops->sqlite(call.ticket.tx);
    assert_int_equal(sqlite3_prepare_v2(handle,
                                        "SELECT 1 UNION ALL SELECT amount FROM "
                                        "effects UNION ALL SELECT 2",
                                        -1, &left, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(left), SQLITE_ROW);
    assert_int_equal(call_complete(&call, IDEM_OK, "1"), IDEM_VERDICT_MINE);
    suite_key(&other, key);
    assert_int_equal(suite_claim_once(&other, key, IDEM_MODE_TRANSACTION, 1),
                     IDEM_VERDICT_MINE);
    suite_key(&other, key);
    assert_int_equal(
        suite_claim_once(&world->suite, key, IDEM_MODE_TRANSACTION, 1),
        IDEM_VERDICT_MINE);
    sqlite3_finalize(left);
    idem_store_free(other.store);
    call_close(&call);
}

static enum idem_status
open_path(struct sqlite_world *world, const char *path, const char *schema)
{
    struct idem_sqlite_options options = {
        .path = path, .schema = schema, .clock = &world->clock.clock};
    struct idem_store *store = NULL;
    struct idem_error err = {0};
    enum idem_status status = idem_sqlite_open(&store, &options, &err);

    assert_int_equal(err.message[0] == '\0', status == IDEM_OK);
    idem_store_free(store);
    return status;
}

static void
a_file_that_cannot_be_is_refused_with_words(void **state)
{
    struct sqlite_world *world = *state;
    char path[TEMPDIR_MAX + 32];
    FILE *file;

    assert_int_equal(open_path(world, NULL, NULL), IDEM_INVALID_ARGUMENT);
    assert_int_equal(open_path(world, ":memory:", NULL), IDEM_INVALID_ARGUMENT);
    assert_int_equal(open_path(world, "/nowhere/x.db", NULL), IDEM_UNAVAILABLE);
    tempdir_file(&world->folder, "text.db", path, sizeof path);
    file = fopen(path, "w");
    assert_true(file && fputs("this is no database, only text\n", file) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(open_path(world, path, NULL), IDEM_DATA_LOSS);
}

static void
a_schema_of_the_service_that_is_wrong_is_refused(void **state)
{
    struct sqlite_world *world = *state;

    assert_int_equal(open_path(world, world->path, "CREATE TABEL x (y)"),
                     IDEM_INTERNAL);
    assert_int_equal(open_path(world, world->path, NULL), IDEM_OK);
}

static void
a_file_of_a_newer_library_is_refused(void **state)
{
    struct sqlite_world *world = *state;

    (void)sqlite_world_number(world, "UPDATE idem_meta SET value = 99"
                                     " WHERE name = 'schema' RETURNING 1");
    assert_int_equal(open_path(world, world->path, NULL),
                     IDEM_FAILED_PRECONDITION);
}

static void
every_commit_is_on_the_disk(void **state)
{
    struct suite_call call;
    struct idem_rows *rows;

    open_mine(*state, &call, IDEM_MODE_TRANSACTION);
    assert_int_equal(idem_sql(call.ticket.tx, &rows, NULL, "PRAGMA synchronous",
                              IDEM_NO_VALUES),
                     IDEM_OK);
    assert_int_equal(idem_rows_int(rows, 0, 0), 2); /* FULL */
    assert_int_equal(idem_sql(call.ticket.tx, &rows, NULL,
                              "PRAGMA journal_mode", IDEM_NO_VALUES),
                     IDEM_OK);
    assert_string_equal(idem_rows_text(rows, 0, 0), "wal");
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    call_close(&call);
}

/* The writer is everybody's: read-only once, it would be for all that come; and
 * a table of its own hides the one in the file. */
static void
a_handler_cannot_change_the_connection_of_all(void **state)
{
    static const char *const changes[] = {
        "PRAGMA query_only = ON",
        "CREATE TEMP TABLE effects (key, amount, id, body)",
        "create /* */ temporary table if not exists effects (key)",
        "CREATE TABLE IF NOT EXISTS \"temp\".effects (key, amount, id, body)",
        "CREATE TEMP VIEW effects AS SELECT 1",
    };
    struct suite_call call, next;
    struct idem_error err;

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        open_mine(*state, &call, IDEM_MODE_TRANSACTION);
        if (idem_sql(call.ticket.tx, NULL, &err, changes[i], IDEM_NO_VALUES) !=
            IDEM_INTERNAL)
            fail_msg("let through: %s", changes[i]);
        assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
        call_close(&call);
    }
    open_mine(*state, &next, IDEM_MODE_TRANSACTION);
    assert_int_equal(call_effect(&next, 5), IDEM_OK);
    assert_int_equal(call_complete(&next, IDEM_OK, "5"), IDEM_VERDICT_MINE);
    call_close(&next);
}

#define IN_A_WORLD(test)                                                       \
    cmocka_unit_test_setup_teardown(test, sqlite_world_set_up,                 \
                                    sqlite_world_tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_claim_that_waits_for_a_transaction_ends_at_its_deadline),
        IN_A_WORLD(a_claim_without_time_left_leaves_no_record),
        IN_A_WORLD(a_completion_waits_past_its_deadline),
        IN_A_WORLD(transactions_of_different_keys_run_one_after_another),
        IN_A_WORLD(a_queued_rival_hears_running_when_the_first_begins),
#ifdef IDEM_FAULTS
        IN_A_WORLD(one_that_cannot_be_done_does_not_take_its_group_with_it),
        IN_A_WORLD(a_completion_that_fails_can_be_repeated),
        IN_A_WORLD(a_transaction_that_cannot_be_recorded_leaves_nothing),
#endif
        IN_A_WORLD(a_deferred_constraint_that_fails_at_commit_leaves_nothing),
        IN_A_WORLD(an_error_is_recorded_after_sqlite_rolled_back_by_itself),
        IN_A_WORLD(success_is_refused_after_sqlite_rolled_back_by_itself),
        IN_A_WORLD(a_handler_that_begins_another_transaction_is_in_doubt),
        IN_A_WORLD(a_statement_ends_at_the_deadline),
        IN_A_WORLD(another_process_is_waited_for_and_then_told_of),
        IN_A_WORLD(a_statement_that_a_handler_leaves_is_ended),
        IN_A_WORLD(a_file_that_cannot_be_is_refused_with_words),
        IN_A_WORLD(a_schema_of_the_service_that_is_wrong_is_refused),
        IN_A_WORLD(a_file_of_a_newer_library_is_refused),
        IN_A_WORLD(every_commit_is_on_the_disk),
        IN_A_WORLD(a_handler_cannot_change_the_connection_of_all),
    };

    return cmocka_run_group_tests_name("sqlite store", tests, NULL, NULL);
}
