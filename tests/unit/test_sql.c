#include "support.h"

#include "sql.h"

static void
commands_that_end_a_transaction_are_seen(void **state)
{
    static const char *const commands[] = {
        "COMMIT",
        "commit;",
        "End",
        "ABORT",
        "begin immediate",
        "START TRANSACTION",
        "ROLLBACK TO x",
        "SAVEPOINT a",
        "release a",
        "\t\r\n COMMIT",
        ";;COMMIT",
        "-- one\n--two\nCOMMIT",
        "/* a */ /**/COMMIT",
        "/* -- */ COMMIT",
        "COMMIT/**/",
        "PREPARE TRANSACTION 'x'",
        "prepare /* */ transaction 'x'",
        "SET TRANSACTION READ ONLY",
        "\357\273\277COMMIT", /* behind a byte order mark */
    };

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!sql_is_transaction_command(commands[i]))
            fail_msg("not seen: %s", commands[i]);
}

/* A comment in a comment: sqlite runs the first, PostgreSQL the second. */
static void
text_that_either_database_reads_as_a_command_is_seen(void **state)
{
    (void)state;
    assert_true(sql_is_transaction_command("/* /* */ COMMIT -- */ */"));
    assert_true(sql_is_transaction_command("/* /* */ SELECT 1 */ COMMIT"));
}

static void
other_statements_are_let_through(void **state)
{
    static const char *const statements[] = {
        "",
        "-- COMMIT",
        "/* COMMIT",
        "SELECT 'COMMIT'",
        "SELECT 1 /* ; COMMIT */",
        "INSERT INTO commit VALUES (1)",
        "commit_log",
        "beginning",
        "\"COMMIT\"",
        "PREPARE plan AS SELECT 1",
        "SET LOCAL x = 1",
        "WITH a AS (SELECT 1) SELECT * FROM a",
    };

    (void)state;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (sql_is_transaction_command(statements[i]))
            fail_msg("refused: %s", statements[i]);
}

static void
what_outlives_its_transaction_is_seen(void **state)
{
    static const char *const lasting[] = {
        "SET search_path = other",
        "set /* */ session x = 1",
        "SET ROLE poor",
        "/* a /* b */ */ RESET ALL",
        "DEALLOCATE ALL",
        "PREPARE plan AS SELECT 1",
        "LISTEN x",
        "DISCARD TEMP",
        "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
        "CREATE TEMP TABLE x (y INT)",
        "create local temporary table x (y int)",
        "SELECT Set_Config('search_path', 'other', false)",
        "SELECT pg_try_advisory_lock(1)",
        "DO $$ BEGIN SET search_path = other; END $$",
        "SELECT 1 AS y INTO TEMP x",
        "WITH a AS (SELECT 1) SELECT * into /**/ temporary table x FROM a",
        "CREATE TABLE pg_temp.x (y INT)",
        "create unlogged table if not exists \"pg_temp\" . x (y int)",
        "CREATE VIEW pg_temp.x AS SELECT 1",
    };
    static const char *const passing[] = {
        "",
        "SET LOCAL search_path = other",
        "SET CONSTRAINTS ALL DEFERRED",
        "CREATE TEMP TABLE x (y INT) ON COMMIT DROP",
        "CREATE TABLE temp (y INT)",
        "CREATE TABLE \"temp\" (y INT)",
        "CREATE TABLE pg_temp.x (y INT) ON COMMIT DROP",
        "INSERT INTO temp VALUES (1)",
        "INSERT INTO temporary SELECT 1",
        "SELECT temp INTO x FROM temperatures",
        "UPDATE x SET y = 1",
        "SELECT pg_advisory_xact_lock(1)",
        "settle",
    };

    (void)state;
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
        if (!sql_changes_session(lasting[i]))
            fail_msg("not seen: %s", lasting[i]);
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (sql_changes_session(passing[i]))
            fail_msg("seen: %s", passing[i]);
}

/* Whoever has the transaction next would meet it. */
static void
what_changes_the_transaction_is_seen(void **state)
{
    static const char *const changes[] = {
        "SET search_path = other",
        "SET LOCAL search_path = other",
        "/* */ set constraints all deferred",
        "CREATE TEMP TABLE x (y INT) ON COMMIT DROP",
        "CREATE TABLE pg_temp.x (y INT) ON COMMIT DROP",
        "SELECT set_config('search_path', 'other', true)",
        "DECLARE c CURSOR FOR SELECT 1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (!sql_changes_transaction(changes[i]))
            fail_msg("not seen: %s", changes[i]);
    assert_false(sql_changes_transaction("UPDATE x SET y = 1"));
    assert_false(sql_changes_transaction("CREATE TABLE temp (y INT)"));
}

static void
what_changes_a_shared_connection_is_seen(void **state)
{
    static const char *const changes[] = {
        "PRAGMA query_only = ON",
        "pragma /* */ main . writable_schema(1)",
        "PRAGMA ignore_check_constraints=1",
        "PRAGMA \"query_only\" = 1",
        "-- x\nATTACH 'other' AS o",
        "DETACH o",
        "CREATE TEMP TABLE x (y)",
        "create temporary view if not exists x as select 1",
        "CREATE TABLE IF NOT EXISTS temp.x (y)",
        "CREATE INDEX [temp].x ON y (z)",
    };
    static const char *const reads[] = {
        "",
        "PRAGMA synchronous",
        "PRAGMA journal_mode;",
        "PRAGMA main.table_info(effects)",
        "PRAGMA defer_foreign_keys = ON",
        "SELECT 'PRAGMA query_only = ON'",
        "CREATE TABLE temp (y)",
        "CREATE TABLE main.temp (y)",
        "INSERT INTO temp VALUES (1)",
    };

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (!sql_changes_connection(changes[i]))
            fail_msg("not seen: %s", changes[i]);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        if (sql_changes_connection(reads[i]))
            fail_msg("seen: %s", reads[i]);
}

static void
blank_is_what_has_no_statement(void **state)
{
    (void)state;
    assert_true(sql_is_blank(""));
    assert_true(sql_is_blank(" ;\n-- a remark\n/* another */;"));
    assert_true(sql_is_blank("-- to the end"));
    assert_true(sql_is_blank("/* to the end"));
    assert_false(sql_is_blank("; SELECT 1"));
    assert_false(sql_is_blank("/* */ x"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_that_end_a_transaction_are_seen),
        cmocka_unit_test(text_that_either_database_reads_as_a_command_is_seen),
        cmocka_unit_test(other_statements_are_let_through),
        cmocka_unit_test(what_outlives_its_transaction_is_seen),
        cmocka_unit_test(what_changes_the_transaction_is_seen),
        cmocka_unit_test(what_changes_a_shared_connection_is_seen),
        cmocka_unit_test(blank_is_what_has_no_statement),
    };

    return cmocka_run_group_tests_name("sql", tests, NULL, NULL);
}
