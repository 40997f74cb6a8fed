#include "support.h"

#include "wire.h"

#include <string.h>

#include "idem/v1/options.pb-c.h"

/* Options are carried as unknown fields: what is added is read, by us and by
 * protobuf-c, whatever its length. */

#define NUMBER 1042
#define LONGEST 20000

/* Lengths of one, two and three bytes. */
static const size_t sizes[] = {0, 1, 127, 128, 300, 16383, 16384, LONGEST};

static void
assert_carried(struct pool *pool, const uint8_t *bytes, size_t size)
{
    Idem__V1__MethodPolicy options;
    Idem__V1__MethodPolicy *read;
    ProtobufCBinaryData joined;
    uint8_t packed[LONGEST + 16];
    size_t length;

    idem__v1__method_policy__init(&options);
    wire_add_unknown(pool, &options.base, NUMBER, bytes, size);
    assert_true(wire_join_unknown(pool, &options.base, NUMBER, &joined));
    assert_int_equal(joined.len, size);
    length = idem__v1__method_policy__pack(&options, packed);
    read = idem__v1__method_policy__unpack(&pool->allocator, length, packed);
    assert_non_null(read);
    assert_int_equal(read->base.n_unknown_fields, 1);
    assert_true(wire_join_unknown(pool, &read->base, NUMBER, &joined));
    assert_int_equal(joined.len, size);
    if (size > 0)
        assert_memory_equal(joined.data, bytes, size);
}

static void
a_field_of_any_length_is_read_as_it_was_added(void **state)
{
    static uint8_t bytes[LONGEST];
    struct pool pool;

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    pool_init(&pool);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        assert_carried(&pool, bytes, sizes[i]);
    pool_fini(&pool);
}

static void
fields_that_come_in_pieces_are_joined(void **state)
{
    Idem__V1__MethodPolicy options;
    ProtobufCBinaryData joined;
    struct pool pool;

    (void)state;
    idem__v1__method_policy__init(&options);
    pool_init(&pool);
    wire_add_unknown(&pool, &options.base, NUMBER, "ab", 2);
    wire_add_unknown(&pool, &options.base, NUMBER + 1, "no", 2);
    wire_add_unknown(&pool, &options.base, NUMBER, "c", 1);
    assert_true(wire_join_unknown(&pool, &options.base, NUMBER, &joined));
    assert_int_equal(joined.len, 3);
    assert_memory_equal(joined.data, "abc", 3);
    wire_strip_unknown(&options.base, NUMBER);
    assert_int_equal(options.base.n_unknown_fields, 1);
    assert_false(wire_join_unknown(&pool, &options.base, NUMBER, &joined));
    pool_fini(&pool);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_of_any_length_is_read_as_it_was_added),
        cmocka_unit_test(fields_that_come_in_pieces_are_joined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
