/* What a message that was made to do harm may cost: stack and memory. */
#include "support.h"

#include "arena.h"
#include "message.h"

#include <stdlib.h>
#include <string.h>

#include "shapes.pb-c.h"

/* Before: bytes that are there, and a tag of one byte with their size. */
static void
nest(uint8_t **at, const uint8_t *end, uint8_t tag)
{
    size_t size = (size_t)(end - *at);
    uint8_t bytes[12] = {tag};
    size_t n = 1;

    for (; size > 0x7f; size >>= 7)
        bytes[n++] = (uint8_t)(0x80 | (size & 0x7f));
    bytes[n++] = (uint8_t)size;
    *at -= n;
    memcpy(*at, bytes, n);
}

/* Case B086: as deep as a message may be large, and the stack is a thread's. */
static void
nesting_that_would_overflow_a_stack_is_refused(void **state)
{
    static const unsigned levels[] = {10, 100, 101, 1000, 10000, 100000};
    size_t room = 1 << 20;
    uint8_t *bytes = malloc(room);

    (void)state;
    assert_non_null(bytes);
    for (unsigned i = 0; i < sizeof levels / sizeof *levels; i++) {
        struct idem_arena *arena = arena_new(1024, 0);
        uint8_t *at = bytes + room;
        struct ProtobufCMessage *message;
        struct idem_error err;
        enum idem_status status;

        for (unsigned n = 0; n < levels[i]; n++)
            nest(&at, bytes + room, 4 << 3 | 2);
        status = idem_message_unpack(
            &shapes__v1__inner__descriptor,
            (struct idem_bytes){at, (size_t)(bytes + room - at)}, NULL, arena,
            &message, &err);
        assert_int_equal(status,
                         levels[i] <= 100 ? IDEM_OK : IDEM_INVALID_ARGUMENT);
        arena_free(arena);
    }
    free(bytes);
}

/* Case B089: two bytes ask for a struct each. */
static void
memory_is_bounded_by_the_size_limit_and_a_factor(void **state)
{
    const struct idem_message_limits limits = {.max_size = 1 << 17};
    struct idem_arena *arena = arena_new(1024, 0);
    struct ProtobufCMessage *message;
    struct idem_error err;
    uint8_t *many = malloc(limits.max_size + 1);

    (void)state;
    for (size_t i = 0; i < limits.max_size; i += 3)
        memcpy(many + i, "\xAA\x02\x00", 3); /* r_inner, empty */
    assert_int_equal(
        idem_message_unpack(&shapes__v1__all__descriptor,
                            (struct idem_bytes){many, limits.max_size / 3 * 3},
                            &limits, arena, &message, &err),
        IDEM_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.message, "memory"));
    assert_true(arena_size(arena) <
                2 * MESSAGE_MEMORY_FACTOR * limits.max_size);
    assert_int_equal(
        idem_message_unpack(&shapes__v1__all__descriptor,
                            (struct idem_bytes){many, limits.max_size + 1},
                            &limits, arena, &message, &err),
        IDEM_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.message, "131073"));
    assert_non_null(strstr(err.message, "131072"));
    free(many);
    arena_free(arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nesting_that_would_overflow_a_stack_is_refused),
        cmocka_unit_test(memory_is_bounded_by_the_size_limit_and_a_factor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
