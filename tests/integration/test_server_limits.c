#include "echo_world.h"

#include "wire_client.h"

#include <idem/limit.h>
#include <idem/metadata.h>
#include <idem/reason.h>
#include <idem/standard.h>

#include <string.h>

/* What a server lets in, at each limit and one over it. */

#define ENTRY 32 /* as metadata.h counts each */

static struct header_end
answer_to(struct wire *wire, uint32_t stream, const struct header_open *open,
          struct idem_bytes message)
{
    wire_open(wire, stream, open, message);
    return wire_end(wire, stream);
}

static void
assert_turned_away(const struct header_end *end, enum idem_status status)
{
    assert_int_equal(end->status, status);
    assert_int_equal(end->effect, IDEM_EFFECT_REFUSED);
    assert_false(end->final);
}

/* A message of that many others, one inside the other. */
static struct idem_bytes
nest(uint8_t *bytes, size_t room, unsigned messages)
{
    size_t at = room;

    for (unsigned i = 0; i < messages; i++) {
        assert_true(room - at < 128);
        bytes[at - 1] = (uint8_t)(room - at);
        bytes[at - 2] = 3 << 3 | 2; /* inner */
        at -= 2;
    }
    return (struct idem_bytes){bytes + at, room - at};
}

static void
a_message_may_be_as_large_as_it_says(void **state)
{
    static uint8_t bytes[1001] = {1 << 3 | 2, 0xE5, 0x07}; /* body: 997 */
    struct echo_options options = {.server = {.max_message = 1000}};
    struct header_open open = {.method = idem_bytes_of(ECHO_ECHO_METHOD)};
    struct echo_world world;
    struct header_end end;
    struct wire wire;

    (void)state;
    echo_world_open(&world, &options);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    end = answer_to(&wire, 1, &open, (struct idem_bytes){bytes, 1000});
    assert_int_not_equal(end.effect, IDEM_EFFECT_REFUSED);
    assert_int_equal(atomic_load(&world.ran), 1);
    end = answer_to(&wire, 2, &open, (struct idem_bytes){bytes, 1001});
    assert_turned_away(&end, IDEM_RESOURCE_EXHAUSTED);
    assert_int_equal(atomic_load(&world.ran), 1);
    wire_close(&wire);
    echo_world_close(&world);
}

static void
messages_may_be_as_deep_as_it_says(void **state)
{
    struct echo_options options = {.server = {.max_depth = 5}};
    struct header_open open = {.method = idem_bytes_of(ECHO_ECHO_METHOD)};
    struct echo_world world;
    struct header_end end;
    struct wire wire;
    uint8_t bytes[64];

    (void)state;
    echo_world_open(&world, &options);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    end = answer_to(&wire, 1, &open, nest(bytes, sizeof bytes, 5));
    assert_int_equal(end.status, IDEM_OK);
    end = answer_to(&wire, 2, &open, nest(bytes, sizeof bytes, 6));
    assert_turned_away(&end, IDEM_INVALID_ARGUMENT);
    wire_close(&wire);
    echo_world_close(&world);
}

static struct echo_result
call_with_metadata(struct echo_world *world, size_t size)
{
    static uint8_t value[1024];
    const struct idem_call_metadata entry = {"x", {value, size - 1 - ENTRY}};
    struct idem_call_options options = {.metadata = &entry, .n_metadata = 1};

    memset(value, 'v', sizeof value);
    return echo_world_call(world, 1, 1, &options);
}

static void
metadata_may_be_as_large_as_it_says(void **state)
{
    struct echo_options options = {.server = {.max_metadata = 500}};
    struct echo_result result;
    struct echo_world world;

    (void)state;
    echo_world_open(&world, &options);
    result = call_with_metadata(&world, 500);
    assert_echoed(&result, 1, 1);
    result = call_with_metadata(&world, 501);
    assert_ended(&result, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED);
    assert_non_null(strstr(result.outcome.message, "501"));
    assert_non_null(strstr(result.outcome.message, "500"));
    echo_world_close(&world);
}

/* One runs, one waits in line, one is told to come back; the answer says so
 * over the wire. */
static void
overload_is_told_with_the_time_to_come_back(void **state)
{
    const struct idem_limit_options limits = {.max_in_flight = 1,
                                              .max_waiting = 1};
    struct echo_options options = {.standard = true,
                                   .server = {.limits = &limits}};
    struct echo_result first, second, third;
    struct echo_world world;

    (void)state;
    echo_world_open(&world, &options);
    assert_string_equal(idem_server_chain(world.server),
                        "health > allow > deadline > limit > validate");
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &first);
    echo_world_await_inside(&world, 1);
    echo_world_start(&world, world.channel, echo_echo_async, 2, 1, NULL,
                     &second);
    third = echo_world_call(&world, 3, 1, NULL);
    assert_ended(&third, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED);
    assert_string_equal(third.outcome.reason, IDEM_OVERLOADED);
    assert_in_range(third.outcome.retry_after_ms, 50, 150);
    assert_int_equal(atomic_load(&world.ran), 1);
    echo_world_open_gate(&world);
    echo_world_await(&world);
    assert_ended(&first, IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_ended(&second, IDEM_OK, IDEM_EFFECT_COMMITTED);
    echo_result_fini(&first);
    echo_result_fini(&second);
    echo_world_close(&world);
}

/* Whoever has shown no identity is the host that he calls from. */
static void
a_rate_is_told_with_the_time_to_come_back(void **state)
{
    const struct idem_limit_options limits = {
        .method = {.rate_calls = 2, .rate_per_ms = 3600000}};
    struct echo_options options = {.standard = true,
                                   .server = {.limits = &limits}};
    struct idem_channel *another;
    struct echo_result result;
    struct echo_world world;

    (void)state;
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    another = echo_world_channel(&world);
    idem_channel_close(world.channel);
    world.channel = another;
    result = echo_world_call(&world, 2, 1, NULL);
    assert_echoed(&result, 2, 1);
    result = echo_world_call(&world, 3, 1, NULL);
    assert_ended(&result, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED);
    assert_string_equal(result.outcome.reason, IDEM_RATE_LIMITED);
    assert_in_range(result.outcome.retry_after_ms, 1700000, 1800000);
    echo_world_close(&world);
}

static void
limits_that_cannot_be_are_refused_by_name(void **state)
{
    static const struct idem_limit_options many = {.max_in_flight = 11};
    static const struct {
        struct idem_server_options options;
        const char *words;
    } table[] = {
        {{.max_metadata = 8193}, "max_metadata is over 8192"},
        {{.max_depth = 101}, "max_depth is over 100"},
        {{.max_queued = 10, .limits = &many},
         "max_in_flight 11 is over max_queued 10"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct idem_server *server;
        struct idem_error err = {0};

        assert_int_equal(
            idem_server_open(&server, NULL, &table[i].options, NULL, &err),
            IDEM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, table[i].words));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_may_be_as_large_as_it_says),
        cmocka_unit_test(messages_may_be_as_deep_as_it_says),
        cmocka_unit_test(metadata_may_be_as_large_as_it_says),
        cmocka_unit_test(overload_is_told_with_the_time_to_come_back),
        cmocka_unit_test(a_rate_is_told_with_the_time_to_come_back),
        cmocka_unit_test(limits_that_cannot_be_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
