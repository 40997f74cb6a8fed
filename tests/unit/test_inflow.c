/* Messages one behind the other, read while others come. */
#include "support.h"

#include "inflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
put(struct inflow *inflow, const char *text)
{
    assert_true(inflow_put(inflow, idem_bytes_of(text), false));
}

static void
assert_next(struct inflow *inflow, const char *text)
{
    struct idem_bytes message;
    bool squeezed;

    assert_true(inflow_next(inflow, &message, &squeezed));
    assert_true(idem_bytes_equal(message, idem_bytes_of(text)));
}

static void
nothing_is_there_before_anything_came(void **state)
{
    struct inflow inflow = {0};
    struct idem_bytes message;
    bool squeezed;

    (void)state;
    assert_false(inflow_next(&inflow, &message, &squeezed));
    assert_false(inflow_turn(&inflow));
    inflow_fini(&inflow);
}

static void
what_comes_while_one_reads_is_read_in_the_next_turn(void **state)
{
    struct inflow inflow = {0};
    struct idem_bytes message;
    bool squeezed;

    (void)state;
    put(&inflow, "one");
    put(&inflow, ""); /* an empty message is one */
    assert_true(inflow_turn(&inflow));
    assert_next(&inflow, "one");
    put(&inflow, "three");
    assert_next(&inflow, "");
    assert_false(inflow_next(&inflow, &message, &squeezed));
    assert_true(inflow_turn(&inflow));
    assert_next(&inflow, "three");
    assert_false(inflow_next(&inflow, &message, &squeezed));
    assert_false(inflow_turn(&inflow));
    inflow_fini(&inflow);
}

static void
large_messages_leave_no_large_buffer(void **state)
{
    struct inflow inflow = {0};
    uint8_t *bytes = calloc(1, 1 << 20);
    struct idem_bytes message;
    bool squeezed;

    (void)state;
    assert_non_null(bytes);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(
            inflow_put(&inflow, (struct idem_bytes){bytes, 1 << 20}, false));
        assert_true(inflow_turn(&inflow));
        assert_true(inflow_next(&inflow, &message, &squeezed));
        assert_int_equal(message.size, 1 << 20);
    }
    put(&inflow, "small");
    assert_true(inflow_turn(&inflow));
    assert_true(inflow.filling.room == 0);
    assert_next(&inflow, "small");
    free(bytes);
    inflow_fini(&inflow);
}

static void
what_was_put_can_be_read_again_from_the_beginning(void **state)
{
    struct backlog backlog = {0};
    struct idem_bytes message;
    bool squeezed;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        assert_true(backlog_put(&backlog, idem_bytes_of("x"), round % 2));
        backlog.at = 0;
        for (unsigned i = 0; i <= round; i++) {
            assert_true(backlog_next(&backlog, &message, &squeezed));
            assert_int_equal(squeezed, i % 2);
        }
        assert_true(backlog_is_through(&backlog));
    }
    backlog_clear(&backlog, 0);
    assert_int_equal(backlog.room, 0);
    backlog_fini(&backlog);
}

/* As a stream's end keeps them: put behind, dropped in front, read again. */
static void
what_is_dropped_is_not_read_again_and_leaves_its_room(void **state)
{
    struct backlog backlog = {0};
    struct idem_bytes message;
    bool squeezed;
    unsigned first = 0, next = 0;

    (void)state;
    while (first < 1000) {
        for (; next < first + 20; next++) {
            char text[16];

            snprintf(text, sizeof text, "message %04u", next);
            assert_true(backlog_put(&backlog, idem_bytes_of(text), false));
        }
        backlog_rewind(&backlog);
        for (unsigned i = first; i < next; i++) {
            char text[16];

            snprintf(text, sizeof text, "message %04u", i);
            assert_true(backlog_next(&backlog, &message, &squeezed));
            assert_true(idem_bytes_equal(message, idem_bytes_of(text)));
        }
        assert_true(backlog_is_through(&backlog));
        assert_int_equal(backlog_kept(&backlog), 20 * (5 + 12));
        for (unsigned i = 0; i < 7; i++, first++)
            backlog_drop(&backlog);
    }
    assert_int_equal(backlog.room, 1024);
    backlog_fini(&backlog);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_there_before_anything_came),
        cmocka_unit_test(what_comes_while_one_reads_is_read_in_the_next_turn),
        cmocka_unit_test(large_messages_leave_no_large_buffer),
        cmocka_unit_test(what_was_put_can_be_read_again_from_the_beginning),
        cmocka_unit_test(what_is_dropped_is_not_read_again_and_leaves_its_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
