#include "suite_call.h"

#include "tx.h"

#include <string.h>

/* The SQL of handlers reads alike on every authority. */

static int
begin(void **state)
{
    struct suite *suite = *state;
    static struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&call, suite, key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    *state = &call;
    return 0;
}

static int
end(void **state)
{
    struct suite_call *call = *state;

    *state = call->suite;
    assert_int_equal(call_release(call), IDEM_VERDICT_MINE);
    call_close(call);
    return 0;
}

static struct idem_rows *
sql(struct suite_call *call, const char *text, const struct idem_value *values,
    size_t n)
{
    struct idem_rows *rows = NULL;
    struct idem_error err = {0};

    if (idem_sql(call->ticket.tx, &rows, &err, text, values, n) != IDEM_OK)
        fail_msg("%s: %s", text, err.message);
    return rows;
}

static void
values_come_back_as_they_went(void **state)
{
    static const char odd[] = "it's \"$1\" ; -- \xc3\xa4";
    struct idem_bytes body = {(const uint8_t *)"\0\xff\0", 3};
    struct suite_call *call = *state;
    struct idem_rows *rows;

    rows = sql(call,
               "INSERT INTO effects (key, amount, id, body)"
               " VALUES ($1, $2, $3, $4)",
               IDEM_VALUES(idem_text(odd), idem_int(INT64_MAX), idem_null(),
                           idem_blob(body)));
    assert_int_equal(idem_rows_affected(rows), 1);
    assert_int_equal(idem_rows_count(rows), 0);
    rows = sql(call, "SELECT key, amount, id, body FROM effects WHERE key = $1",
               IDEM_VALUES(idem_text(odd)));
    assert_int_equal(idem_rows_count(rows), 1);
    assert_string_equal(idem_rows_text(rows, 0, 0), odd);
    assert_true(idem_rows_int(rows, 0, 1) == INT64_MAX);
    assert_string_equal(idem_rows_text(rows, 0, 1), "9223372036854775807");
    assert_true(idem_rows_null(rows, 0, 2));
    assert_int_equal(idem_rows_int(rows, 0, 2), 0);
    assert_string_equal(idem_rows_text(rows, 0, 2), "");
    assert_true(idem_bytes_equal(idem_rows_bytes(rows, 0, 3), body));
}

static void
empty_text_and_empty_bytes_are_not_null(void **state)
{
    struct suite_call *call = *state;
    struct idem_bytes none = {NULL, 0};
    struct idem_rows *rows =
        sql(call,
            "INSERT INTO effects (key, id, body) VALUES ($1, 77, $2)"
            " RETURNING key, body, amount",
            IDEM_VALUES(idem_text(""), idem_blob(none)));

    assert_int_equal(idem_rows_affected(rows), 1);
    assert_false(idem_rows_null(rows, 0, 0));
    assert_false(idem_rows_null(rows, 0, 1));
    assert_true(idem_rows_null(rows, 0, 2));
}

static void
parameters_go_by_their_number(void **state)
{
    struct suite_call *call = *state;
    struct idem_rows *rows =
        sql(call, "SELECT CAST($2 AS TEXT), CAST($1 AS TEXT), CAST($2 AS TEXT)",
            IDEM_VALUES(idem_text("one"), idem_text("two")));

    assert_string_equal(idem_rows_text(rows, 0, 0), "two");
    assert_string_equal(idem_rows_text(rows, 0, 1), "one");
    assert_string_equal(idem_rows_text(rows, 0, 2), "two");
}

static void
many_rows_keep_their_order(void **state)
{
    struct suite_call *call = *state;
    struct idem_rows *rows;

    for (int i = 0; i < 100; i++)
        (void)sql(call, "INSERT INTO effects (key, amount) VALUES ($1, $2)",
                  IDEM_VALUES(idem_text("many"), idem_int(i)));
    rows = sql(call,
               "SELECT amount FROM effects WHERE key = 'many' ORDER BY amount",
               IDEM_NO_VALUES);
    assert_int_equal(idem_rows_count(rows), 100);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(idem_rows_int(rows, i, 0), i);
    rows = sql(call, "UPDATE effects SET amount = 1 WHERE key = 'many'",
               IDEM_NO_VALUES);
    assert_int_equal(idem_rows_affected(rows), 100);
    rows = sql(call, "SELECT 1 WHERE 1 = 2", IDEM_NO_VALUES);
    assert_int_equal(idem_rows_affected(rows), 0);
}

static enum idem_status
try(struct suite_call *call, struct idem_error *err, const char *text,
    const struct idem_value *values, size_t n)
{
    return idem_sql(call->ticket.tx, NULL, err, text, values, n);
}

static void
the_same_unique_value_twice_already_exists(void **state)
{
    struct suite_call *call = *state;
    struct idem_error err;

    (void)sql(call, "INSERT INTO effects (id) VALUES (901)", IDEM_NO_VALUES);
    assert_int_equal(try(call, &err, "INSERT INTO effects (id) VALUES (901)",
                         IDEM_NO_VALUES),
                     IDEM_ALREADY_EXISTS);
    assert_true(strlen(err.reason) > 0);
}

static void
a_check_that_fails_is_a_precondition(void **state)
{
    struct idem_error err;

    assert_int_equal(try(*state, &err,
                         "INSERT INTO effects (amount) VALUES (-5000)",
                         IDEM_NO_VALUES),
                     IDEM_FAILED_PRECONDITION);
}

static void
wrong_sql_is_the_programs_fault(void **state)
{
    struct idem_error err;

    assert_int_equal(try(*state, &err, "SELEC 1", IDEM_NO_VALUES),
                     IDEM_INTERNAL);
    assert_true(strlen(err.message) > 0);
}

/* A deployment that forgot a table must not become a final "no". */
static void
a_table_that_is_not_there_is_the_programs_fault(void **state)
{
    assert_int_equal(try(*state, NULL, "SELECT 1 FROM nowhere", IDEM_NO_VALUES),
                     IDEM_INTERNAL);
}

static void
a_missing_parameter_is_the_programs_fault(void **state)
{
    assert_int_equal(try(*state, NULL, "SELECT CAST($2 AS TEXT)",
                         IDEM_VALUES(idem_text("one"))),
                     IDEM_INTERNAL);
}

static void
a_parameter_too_many_is_the_programs_fault(void **state)
{
    assert_int_equal(try(*state, NULL, "SELECT CAST($1 AS TEXT)",
                         IDEM_VALUES(idem_text("one"), idem_text("two"))),
                     IDEM_INTERNAL);
}

static void
two_statements_are_the_programs_fault(void **state)
{
    assert_int_equal(try(*state, NULL,
                         "INSERT INTO effects (id) VALUES (1);"
                         " INSERT INTO effects (id) VALUES (2)",
                         IDEM_NO_VALUES),
                     IDEM_INTERNAL);
}

static void
a_statement_past_the_deadline_does_not_run(void **state)
{
    struct suite_call *call = *state;

    call->ticket.tx->deadline_ns = 0;
    assert_int_equal(try(call, NULL, "SELECT 1", IDEM_NO_VALUES),
                     IDEM_DEADLINE_EXCEEDED);
}

static void
a_read_sees_what_is_committed_and_writes_nothing(void **state)
{
    struct suite_call *call = *state;
    struct idem_store *store = call->suite->store;
    struct idem_error err = {0};
    struct idem_tx *tx =
        store->ops->begin_read(store, call->ticket.arena, INT64_MAX, &err);

    assert_non_null(tx);
    assert_int_not_equal(idem_sql(tx, NULL, &err,
                                  "INSERT INTO effects (id) VALUES (1)",
                                  IDEM_NO_VALUES),
                         IDEM_OK);
    store->ops->end_read(store, tx);
}

#define IN_A_TRANSACTION(test) cmocka_unit_test_setup_teardown(test, begin, end)

int
suite_run_sql(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_TRANSACTION(values_come_back_as_they_went),
        IN_A_TRANSACTION(empty_text_and_empty_bytes_are_not_null),
        IN_A_TRANSACTION(parameters_go_by_their_number),
        IN_A_TRANSACTION(many_rows_keep_their_order),
        IN_A_TRANSACTION(the_same_unique_value_twice_already_exists),
        IN_A_TRANSACTION(a_check_that_fails_is_a_precondition),
        IN_A_TRANSACTION(wrong_sql_is_the_programs_fault),
        IN_A_TRANSACTION(a_table_that_is_not_there_is_the_programs_fault),
        IN_A_TRANSACTION(a_missing_parameter_is_the_programs_fault),
        IN_A_TRANSACTION(a_parameter_too_many_is_the_programs_fault),
        IN_A_TRANSACTION(two_statements_are_the_programs_fault),
        IN_A_TRANSACTION(a_statement_past_the_deadline_does_not_run),
        IN_A_TRANSACTION(a_read_sees_what_is_committed_and_writes_nothing),
    };

    return cmocka_run_group_tests_name("sql", tests, suite_set_up,
                                       suite_tear_down);
}
