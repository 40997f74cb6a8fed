#include "echo_world.h"

#include "wire_client.h"

#include <idem/call.h>
#include <idem/reason.h>

#include <stdlib.h>
#include <string.h>

/* Messages that are too large for one of the ends: who is told, when, and that
 * nobody else notices. */

/* B035, B100: told at once, with both sizes; the next call works. */
static void
a_request_over_the_channels_limit_fails_at_once(void **state)
{
    struct echo_options options = {.channel = {.max_message = 1000}};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 2000, NULL);
    assert_ended(&result, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(result.outcome.reason, IDEM_REQUEST_TOO_LARGE);
    assert_non_null(strstr(result.outcome.message, "2005 bytes"));
    assert_non_null(strstr(result.outcome.message, "1000"));
    assert_int_equal(result.outcome.attempts, 0);
    assert_int_equal(atomic_load(&world.ran), 0);
    result = echo_world_call(&world, 1, 10, NULL);
    assert_echoed(&result, 1, 10);
    echo_world_close(&world);
}

/* A request of that much, with a reply of a few bytes. */
static struct echo_result
world_block(struct echo_world *world, size_t size)
{
    struct echo_result result;

    echo_world_start(world, world->channel, echo_block_async, 1, size, NULL,
                     &result);
    echo_world_await(world);
    echo_result_fini(&result);
    return result;
}

static void
a_request_over_the_servers_limit_never_leaves(void **state)
{
    struct echo_options options = {.server = {.max_message = 65536}};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, &options);
    echo_world_open_gate(&world);
    result = world_block(&world, 65536 - 6); /* rpc 87 */
    assert_ended(&result, IDEM_OK, IDEM_EFFECT_COMMITTED);
    result = world_block(&world, 65537 - 6);
    assert_ended(&result, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_NOT_SENT);
    assert_non_null(strstr(result.outcome.message, "65537 bytes"));
    assert_non_null(strstr(result.outcome.message, "65536"));
    result = echo_world_call(&world, 1, 10, NULL);
    assert_echoed(&result, 1, 10);
    echo_world_close(&world);
}

/* B095: as many as go into 3 MB, twenty times at once. They are refused before
 * their memory is many times theirs, and the server works on. */
static void
requests_of_unknown_fields_are_refused(void **state)
{
    enum { PEERS = 20 };
    const struct header_open open = {.method = idem_bytes_of(ECHO_ECHO_METHOD)};
    size_t size = 3 << 20;
    uint8_t *bytes = calloc(1, size);
    struct echo_world world;
    struct echo_result result;
    struct wire wires[PEERS];

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i += 2)
        bytes[i] = 15 << 3; /* of the request's type there is no such field */
    echo_world_open(&world, NULL);
    for (unsigned i = 0; i < PEERS; i++) {
        wire_connect(&wires[i], world.address);
        wire_hello(&wires[i], 0);
    }
    for (unsigned i = 0; i < PEERS; i++)
        wire_open(&wires[i], 1, &open, (struct idem_bytes){bytes, size});
    for (unsigned i = 0; i < PEERS; i++) {
        struct header_end end = wire_end(&wires[i], 1);

        assert_int_equal(end.status, IDEM_RESOURCE_EXHAUSTED);
        assert_int_equal(end.effect, IDEM_EFFECT_REFUSED);
        assert_non_null(memmem(end.message.data, end.message.size, "65536", 5));
    }
    assert_int_equal(atomic_load(&world.ran), 0);
    result = echo_world_call(&world, 1, 10, NULL);
    assert_echoed(&result, 1, 10);
    for (unsigned i = 0; i < PEERS; i++)
        wire_close(&wires[i]);
    echo_world_close(&world);
    free(bytes);
}

/* B099, B102: one execution, a size error and no time-out. */
static void
a_reply_over_the_channels_limit_is_an_error_about_a_done_effect(void **state)
{
    struct echo_options options = {.channel = {.max_message = 1024}};
    echo_grow_request request = ECHO_GROW_REQUEST_INIT;
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, &options);
    request.size = 10240;
    result.status =
        echo_grow(world.channel, &request, NULL, NULL, &result.outcome);
    assert_ended(&result, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_COMMITTED);
    assert_string_equal(result.outcome.reason, IDEM_REPLY_TOO_LARGE);
    assert_int_equal(atomic_load(&world.ran), 1);
    result = echo_world_call(&world, 1, 10, NULL);
    assert_echoed(&result, 1, 10);
    echo_world_close(&world);
}

static void
a_reply_over_the_servers_limit_is_the_handlers_failure(void **state)
{
    struct echo_options options = {.server = {.max_message = 1024},
                                   .channel = {.max_message = 100000}};
    echo_grow_request request = ECHO_GROW_REQUEST_INIT;
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, &options);
    request.size = 2000;
    result.status =
        echo_grow(world.channel, &request, NULL, NULL, &result.outcome);
    assert_ended(&result, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_ROLLED_BACK);
    echo_world_close(&world);
}

/* rpc 65: what a call took is given back when it ends. */
static void
requests_that_wait_are_bounded(void **state)
{
    struct echo_options options = {.channel = {.max_buffered = 10000}};
    struct echo_world world;
    struct echo_result first, second;

    (void)state;
    echo_world_open(&world, &options);
    echo_world_start(&world, world.channel, echo_block_async, 1, 6000, NULL,
                     &first);
    echo_world_await_inside(&world, 1);
    second = echo_world_call(&world, 2, 6000, NULL);
    assert_ended(&second, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_NOT_SENT);
    echo_world_open_gate(&world);
    echo_world_await(&world);
    assert_ended(&first, IDEM_OK, IDEM_EFFECT_COMMITTED);
    echo_result_fini(&first);
    second = echo_world_call(&world, 2, 6000, NULL);
    assert_echoed(&second, 2, 6000);
    echo_world_close(&world);
}

static void
grow_done(struct idem_call *call, const echo_echo_reply *reply,
          const struct idem_outcome *outcome)
{
    struct echo_result *result = idem_call_user(call);
    struct echo_world *world = result->world;

    pthread_mutex_lock(&world->lock);
    result->outcome = *outcome;
    result->size = reply ? reply->body.len : 0;
    world->ended++;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

static void
start_grow(struct echo_world *world, struct idem_channel *channel,
           struct echo_result *result)
{
    const struct idem_call_options options = {.user = result};
    echo_grow_request request = ECHO_GROW_REQUEST_INIT;

    *result = (struct echo_result){.world = world};
    request.size = 10240;
    pthread_mutex_lock(&world->lock);
    world->started++;
    pthread_mutex_unlock(&world->lock);
    result->call = echo_grow_async(channel, &request, &options, grow_done);
}

/* B102: twenty clients that take no large reply ask for one, beside twenty that
 * do; the server lives, and the others notice nothing. */
static void
clients_that_take_little_hurt_nobody(void **state)
{
    enum { PAIRS = 20 };
    struct echo_options options = {.channel = {.max_message = 1024}};
    struct idem_channel *small[PAIRS], *normal[PAIRS];
    static struct echo_result refused[PAIRS], grown[PAIRS];
    struct echo_world world;

    (void)state;
    echo_world_open(&world, &options);
    for (unsigned i = 0; i < PAIRS; i++) {
        world.options.channel.max_message = 1024;
        small[i] = echo_world_channel(&world);
        world.options.channel.max_message = 0;
        normal[i] = echo_world_channel(&world);
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        start_grow(&world, small[i], &refused[i]);
        start_grow(&world, normal[i], &grown[i]);
    }
    echo_world_await(&world);
    for (unsigned i = 0; i < PAIRS; i++) {
        assert_ended(&refused[i], IDEM_RESOURCE_EXHAUSTED,
                     IDEM_EFFECT_COMMITTED);
        assert_string_equal(refused[i].outcome.reason, IDEM_REPLY_TOO_LARGE);
        assert_ended(&grown[i], IDEM_OK, IDEM_EFFECT_COMMITTED);
        echo_result_fini(&refused[i]);
        echo_result_fini(&grown[i]);
        idem_channel_close(small[i]);
        idem_channel_close(normal[i]);
    }
    assert_int_equal(atomic_load(&world.ran), 2 * PAIRS);
    echo_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_over_the_channels_limit_fails_at_once),
        cmocka_unit_test(a_request_over_the_servers_limit_never_leaves),
        cmocka_unit_test(
            a_reply_over_the_channels_limit_is_an_error_about_a_done_effect),
        cmocka_unit_test(requests_of_unknown_fields_are_refused),
        cmocka_unit_test(
            a_reply_over_the_servers_limit_is_the_handlers_failure),
        cmocka_unit_test(requests_that_wait_are_bounded),
        cmocka_unit_test(clients_that_take_little_hurt_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
