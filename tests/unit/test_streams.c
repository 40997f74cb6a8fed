#include "support.h"

#include "streams.h"

#include <stdlib.h>

#define MANY 5000

static void
each_id_finds_what_was_added_under_it(void **state)
{
    struct streams streams = {0};
    char things[MANY];

    (void)state;
    for (uint32_t i = 0; i < MANY; i++)
        assert_true(streams_add(&streams, i + 1, &things[i]));
    assert_int_equal(streams.count, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        assert_ptr_equal(streams_find(&streams, i + 1), &things[i]);
    assert_null(streams_find(&streams, MANY + 1));
    assert_null(streams_find(&streams, 0));
    streams_fini(&streams);
}

/* Ids grow, what is under way is a window that ends in any order. */
static void
a_window_of_growing_ids_ends_in_any_order(void **state)
{
    struct streams streams = {0};
    uint32_t window[64], next = 1;
    char things[64];

    (void)state;
    srand(1);
    for (unsigned i = 0; i < 64; i++) {
        window[i] = next++;
        assert_true(streams_add(&streams, window[i], &things[i]));
    }
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = (unsigned)rand() % 64;

        assert_ptr_equal(streams_take(&streams, window[i]), &things[i]);
        assert_null(streams_take(&streams, window[i]));
        window[i] = next++;
        assert_true(streams_add(&streams, window[i], &things[i]));
    }
    assert_int_equal(streams.count, 64);
    for (unsigned i = 0; i < 64; i++)
        assert_ptr_equal(streams_take(&streams, window[i]), &things[i]);
    assert_int_equal(streams.count, 0);
    streams_fini(&streams);
}

static void
those_above_an_id_are_taken_and_the_rest_stays(void **state)
{
    struct streams streams = {0};
    char things[100];
    unsigned taken = 0;
    uint32_t at = 0;

    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        assert_true(streams_add(&streams, i + 1, &things[i]));
    while (streams_take_above(&streams, 40, &at))
        taken++;
    assert_int_equal(taken, 60);
    for (uint32_t i = 0; i < 100; i++)
        assert_ptr_equal(streams_find(&streams, i + 1),
                         i < 40 ? &things[i] : NULL);
    streams_fini(&streams);
}

static void
those_above_an_id_are_found_once_each_and_stay(void **state)
{
    static int things[100];
    struct streams streams = {0};
    uint32_t at = 0;
    int *found;

    (void)state;
    assert_null(streams_next_above(&streams, 0, &at));
    for (uint32_t i = 0; i < 100; i++)
        assert_true(streams_add(&streams, i + 1, &things[i]));
    while ((found = streams_next_above(&streams, 40, &at)) != NULL)
        (*found)++;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(things[i], i >= 40);
    assert_int_equal(streams.count, 100);
    streams_fini(&streams);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_id_finds_what_was_added_under_it),
        cmocka_unit_test(a_window_of_growing_ids_ends_in_any_order),
        cmocka_unit_test(those_above_an_id_are_taken_and_the_rest_stays),
        cmocka_unit_test(those_above_an_id_are_found_once_each_and_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
