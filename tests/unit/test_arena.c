#include "support.h"

#include "arena.h"

#include <stdint.h>
#include <string.h>

static void
memory_is_aligned_and_apart(void **state)
{
    struct idem_arena *arena = arena_new(100, 0);
    uint8_t *blocks[200];

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        blocks[i] = idem_arena_alloc(arena, i);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        memset(blocks[i], (int)i, i);
    }
    for (unsigned i = 0; i < 200; i++)
        for (unsigned j = 0; j < i; j++)
            assert_int_equal(blocks[i][j], i);
    arena_free(arena);
}

static void
a_small_call_costs_one_slab(void **state)
{
    struct idem_arena *arena = arena_new(1024, 0);
    size_t size = arena_size(arena);

    (void)state;
    for (unsigned i = 0; i < 64; i++)
        assert_non_null(idem_arena_alloc(arena, 16));
    assert_int_equal(arena_size(arena), size);
    assert_non_null(idem_arena_alloc(arena, 1));
    assert_true(arena_size(arena) > size);
    arena_free(arena);
}

static void
past_its_limit_it_gives_nothing(void **state)
{
    struct idem_arena *arena = arena_new(64, 10000);

    (void)state;
    assert_null(idem_arena_alloc(arena, 10001));
    assert_null(idem_arena_alloc(arena, SIZE_MAX));
    assert_null(idem_arena_alloc(arena, SIZE_MAX - 7));
    while (idem_arena_alloc(arena, 500))
        assert_true(arena_size(arena) <= 10000);
    assert_true(arena_size(arena) > 5000);
    arena_free(arena);
    arena_free(NULL);
}

static void
copies_and_texts_end_with_a_nul(void **state)
{
    struct idem_arena *arena = arena_new(64, 0);
    struct idem_bytes bytes = {(const uint8_t *)"a\0b", 3};

    (void)state;
    assert_memory_equal(idem_arena_copy(arena, bytes), "a\0b", 4);
    assert_string_equal((char *)idem_arena_copy(arena, (struct idem_bytes){0}),
                        "");
    assert_string_equal(idem_arena_printf(arena, "%s %d", "no", 7), "no 7");
    assert_string_equal(idem_arena_printf(arena, "%0500d", 1) + 498, "01");

    const uint8_t *zero = idem_arena_zalloc(arena, 300);

    for (unsigned i = 0; i < 300; i++)
        assert_int_equal(zero[i], 0);
    arena_free(arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_apart),
        cmocka_unit_test(a_small_call_costs_one_slab),
        cmocka_unit_test(past_its_limit_it_gives_nothing),
        cmocka_unit_test(copies_and_texts_end_with_a_nul),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
