/* Streams over real sockets, in blocking style: each kind, its flow control,
 * and what ends it. The numbers are those of docs/cases-rpc.md. */
#include "flow_world.h"

#include "quota.h"
#include "tempdir.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WINDOW 65536

static struct flow_world world;

static int
up(void **state)
{
    const struct flow_options options = {
        .server = {.stream_window = WINDOW},
        .channel = {.stream_window = WINDOW},
    };

    (void)state;
    flow_world_open(&world, &options);
    return 0;
}

static int
down(void **state)
{
    (void)state;
    flow_world_close(&world);
    return 0;
}

static struct flow_count_stream *
open_count(uint64_t count, uint64_t size, enum idem_status status,
           const struct idem_call_options *options)
{
    flow_count_request request = FLOW_COUNT_REQUEST_INIT;

    request.count = count;
    request.size = size;
    request.status = status;
    return flow_count_open(world.channel, &request, options);
}

static void
assert_counted(struct flow_count_stream *stream, uint64_t from, uint64_t to,
               size_t size)
{
    for (uint64_t i = from; i <= to; i++)
        assert_note(flow_count_next(stream), i, size);
    assert_null(flow_count_next(stream));
}

static void
a_server_stream_is_read_in_order_to_its_end(void **state)
{
    struct flow_count_stream *stream = open_count(1000, 100, IDEM_OK, NULL);
    struct idem_outcome outcome;

    (void)state;
    assert_counted(stream, 1, 1000, 100);
    assert_int_equal(flow_count_finish(stream, &outcome), IDEM_OK);
    assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
}

static void
a_stream_may_be_empty(void **state)
{
    struct flow_count_stream *count = open_count(0, 0, IDEM_OK, NULL);
    struct flow_sum_stream *sum = flow_sum_open(world.channel, NULL);
    flow_sum_reply *reply = NULL;

    (void)state;
    assert_null(flow_count_next(count));
    assert_int_equal(flow_count_finish(count, NULL), IDEM_OK);
    assert_int_equal(flow_sum_finish(sum, &reply, NULL), IDEM_OK);
    assert_int_equal(reply->count, 0);
    flow_sum_reply_free(reply);
}

static void
what_came_before_a_failure_is_read_before_it(void **state)
{
    struct idem_metadata trailers;
    const struct idem_call_options options = {.trailers = &trailers};
    struct flow_count_stream *stream =
        open_count(10, 1, IDEM_NOT_FOUND, &options);
    struct idem_outcome outcome;
    struct idem_bytes left;

    (void)state;
    assert_counted(stream, 1, 10, 1);
    assert_int_equal(flow_count_finish(stream, &outcome), IDEM_NOT_FOUND);
    assert_int_equal(outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_string_equal(outcome.message, "as it was asked to");
    assert_true(idem_metadata_get(&trailers, "left", &left));
    assert_true(idem_bytes_equal(left, idem_bytes_of("so")));
    idem_trailers_free(&trailers);
}

static void
a_client_stream_is_answered_once(void **state)
{
    struct flow_sum_stream *stream = flow_sum_open(world.channel, NULL);
    flow_sum_reply *reply = NULL;

    (void)state;
    for (uint64_t i = 1; i <= 1000; i++)
        assert_int_equal(flow_sum_write(stream, flow_note_of(i, 500)), IDEM_OK);
    assert_int_equal(flow_sum_finish(stream, &reply, NULL), IDEM_OK);
    assert_int_equal(reply->count, 1000);
    assert_int_equal(reply->sum, 500500);
    flow_sum_reply_free(reply);
}

static void
a_conversation_goes_to_and_fro(void **state)
{
    struct flow_chat_stream *stream = flow_chat_open(world.channel, NULL);

    (void)state;
    for (uint64_t i = 1; i <= 200; i++) {
        assert_int_equal(flow_chat_write(stream, flow_note_of(i, i)), IDEM_OK);
        assert_note(flow_chat_next(stream), i, i);
    }
    assert_int_equal(flow_chat_finish(stream, NULL), IDEM_OK);
}

/* Half close: the other half goes on. */
static void
after_the_clients_end_the_server_still_speaks(void **state)
{
    struct flow_chat_stream *stream = flow_chat_open(world.channel, NULL);

    (void)state;
    for (uint64_t i = 1; i <= 50; i++)
        assert_int_equal(flow_chat_write(stream, flow_note_of(i, 10)), IDEM_OK);
    flow_chat_end(stream);
    flow_chat_end(stream);
    assert_int_equal(flow_chat_write(stream, flow_note_of(51, 10)),
                     IDEM_FAILED_PRECONDITION);
    for (uint64_t i = 1; i <= 50; i++)
        assert_note(flow_chat_next(stream), i, 10);
    assert_null(flow_chat_next(stream));
    assert_int_equal(flow_chat_finish(stream, NULL), IDEM_OK);
}

/* --- Flow control --- */

static void
a_slow_reader_stops_its_writer_and_nobody_else(void **state)
{
    const unsigned fit = WINDOW / (1000 + 64) + 1;
    struct flow_count_stream *stream = open_count(1000, 1000, IDEM_OK, NULL);

    (void)state;
    flow_world_await(&world, &world.sent, fit - 8);
    for (unsigned i = 0; i < 100; i++)
        flow_world_say(&world, i);
    assert_in_range(atomic_load(&world.sent), fit - 8, fit + 8);
    assert_counted(stream, 1, 1000, 1000);
    assert_int_equal(flow_count_finish(stream, NULL), IDEM_OK);
    assert_int_equal(atomic_load(&world.sent), 1000);
}

static void
a_message_over_the_window_goes_all_the_same(void **state)
{
    struct flow_chat_stream *stream = flow_chat_open(world.channel, NULL);

    (void)state;
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(
            flow_chat_write(stream, flow_note_of(i, 10 * WINDOW + i)), IDEM_OK);
        assert_note(flow_chat_next(stream), i, 10 * WINDOW + i);
    }
    assert_int_equal(flow_chat_finish(stream, NULL), IDEM_OK);
}

/* --- Ends --- */

static void
giving_up_reaches_the_handler(void **state)
{
    struct flow_chat_stream *stream = flow_chat_open(world.channel, NULL);
    struct idem_outcome outcome;

    (void)state;
    assert_int_equal(flow_chat_write(stream, flow_note_of(1, 1)), IDEM_OK);
    assert_note(flow_chat_next(stream), 1, 1);
    flow_chat_cancel(stream);
    assert_null(flow_chat_next(stream));
    assert_int_equal(flow_chat_write(stream, flow_note_of(2, 1)),
                     IDEM_CANCELLED);
    assert_int_equal(flow_chat_finish(stream, &outcome), IDEM_CANCELLED);
    assert_int_equal(outcome.effect, IDEM_EFFECT_IN_DOUBT);
    flow_world_await(&world, &world.given_up, 1);
}

static void
a_writer_that_waits_for_room_is_woken_by_the_end(void **state)
{
    struct flow_count_stream *stream = open_count(1000, 1000, IDEM_OK, NULL);

    (void)state;
    flow_world_await(&world, &world.sent, 10);
    flow_count_cancel(stream);
    assert_int_equal(flow_count_finish(stream, NULL), IDEM_CANCELLED);
    flow_world_await(&world, &world.given_up, 1);
}

/* rpc 69, 79: of a stream as of a call. */
static void
the_deadline_ends_both_ends(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 50};
    struct flow_chat_stream *stream = flow_chat_open(world.channel, &options);
    struct idem_outcome outcome;

    (void)state;
    assert_null(flow_chat_next(stream));
    assert_int_equal(flow_chat_finish(stream, &outcome),
                     IDEM_DEADLINE_EXCEEDED);
    if (atomic_load(&world.ran) > 0)
        flow_world_await(&world, &world.given_up, 1);
}

/* rpc 95, 98 */
static void
drain_lets_a_stream_end_and_takes_no_new_one(void **state)
{
    struct flow_chat_stream *stream = flow_chat_open(world.channel, NULL);
    struct flow_chat_stream *late;

    (void)state;
    assert_int_equal(flow_chat_write(stream, flow_note_of(1, 1)), IDEM_OK);
    assert_note(flow_chat_next(stream), 1, 1);
    idem_server_drain(world.server);
    assert_int_equal(flow_chat_write(stream, flow_note_of(2, 1)), IDEM_OK);
    assert_note(flow_chat_next(stream), 2, 1);
    late = flow_chat_open(world.channel, NULL);
    assert_null(flow_chat_next(late));
    assert_int_equal(flow_chat_finish(late, NULL), IDEM_UNAVAILABLE);
    assert_int_equal(flow_chat_finish(stream, NULL), IDEM_OK);
}

/* rpc 97 */
static void
stop_cuts_a_stream_that_does_not_end(void **state)
{
    const struct flow_options options = {.server = {.drain_ms = 1}};
    struct flow_chat_stream *stream;
    struct idem_outcome outcome;

    (void)state;
    flow_world_close(&world);
    flow_world_open(&world, &options);
    stream = flow_chat_open(world.channel, NULL);
    assert_int_equal(flow_chat_write(stream, flow_note_of(1, 1)), IDEM_OK);
    assert_note(flow_chat_next(stream), 1, 1);
    idem_server_stop(world.server);
    assert_null(flow_chat_next(stream));
    assert_int_equal(flow_chat_finish(stream, &outcome), IDEM_UNAVAILABLE);
    flow_world_await(&world, &world.given_up, 1);
}

/* --- Limits --- */

/* rpc 87: of each message of a stream. */
static void
a_message_over_a_limit_is_refused(void **state)
{
    const struct flow_options options = {.server = {.max_message = 1000}};
    struct flow_chat_stream *stream;

    (void)state;
    flow_world_close(&world);
    flow_world_open(&world, &options);
    stream = flow_chat_open(world.channel, NULL);
    assert_int_equal(flow_chat_write(stream, flow_note_of(1, 990)), IDEM_OK);
    assert_note(flow_chat_next(stream), 1, 990);
    assert_int_equal(flow_chat_write(stream, flow_note_of(2, 1001)),
                     IDEM_RESOURCE_EXHAUSTED);
    assert_int_equal(flow_chat_write(stream, flow_note_of(3, 990)), IDEM_OK);
    assert_note(flow_chat_next(stream), 3, 990);
    assert_int_equal(flow_chat_finish(stream, NULL), IDEM_OK);
}

static void
more_streams_than_the_server_takes_are_refused(void **state)
{
    const struct flow_options options = {.server = {.max_streaming = 2}};
    struct flow_chat_stream *streams[3];
    struct idem_outcome outcome;

    (void)state;
    flow_world_close(&world);
    flow_world_open(&world, &options);
    for (unsigned i = 0; i < 3; i++)
        streams[i] = flow_chat_open(world.channel, NULL);
    assert_int_equal(flow_chat_finish(streams[2], &outcome),
                     IDEM_RESOURCE_EXHAUSTED);
    assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
    assert_non_null(strstr(outcome.message, "max_streaming"));
    flow_world_say(&world, 7);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(flow_chat_finish(streams[i], NULL), IDEM_OK);
}

/* --- An interceptor of the author's --- */

/* docs/interceptors.md. What its own side sends does not count. */
static void
the_example_quota_ends_a_stream_that_brings_too_much(void **state)
{
    struct flow_options options = {.address = NULL};
    struct flow_chat_stream *stream;
    struct idem_outcome outcome;

    (void)state;
    options.on_server = quota_new(3);
    flow_world_close(&world);
    flow_world_open(&world, &options);
    assert_non_null(strstr(idem_server_chain(world.server), "quota"));
    stream = flow_chat_open(world.channel, NULL);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(flow_chat_write(stream, flow_note_of(i, 10)), IDEM_OK);
        assert_note(flow_chat_next(stream), i, 10);
    }
    assert_int_equal(flow_chat_write(stream, flow_note_of(4, 10)), IDEM_OK);
    assert_null(flow_chat_next(stream));
    assert_int_equal(flow_chat_finish(stream, &outcome),
                     IDEM_RESOURCE_EXHAUSTED);
    assert_string_equal(outcome.message, "flow.v1.Flow/Chat: over 3 messages");
}

/* --- The other transports --- */

static void
talk_at(const char *address)
{
    const struct flow_options options = {.address = address};
    struct flow_chat_stream *stream;

    flow_world_close(&world);
    flow_world_open(&world, &options);
    stream = flow_chat_open(world.channel, NULL);
    for (uint64_t i = 1; i <= 20; i++)
        assert_int_equal(flow_chat_write(stream, flow_note_of(i, 20000)),
                         IDEM_OK);
    flow_chat_end(stream);
    for (uint64_t i = 1; i <= 20; i++)
        assert_note(flow_chat_next(stream), i, 20000);
    assert_int_equal(flow_chat_finish(stream, NULL), IDEM_OK);
}

static void
streams_go_over_every_transport(void **state)
{
    char path[128], ipc[160], abstract[64];
    struct tempdir dir;

    (void)state;
    tempdir_open(&dir);
    snprintf(ipc, sizeof ipc, "ipc://%s",
             tempdir_file(&dir, "streams", path, sizeof path));
    snprintf(abstract, sizeof abstract, "abstract://streams-%ld",
             (long)getpid());
    talk_at("inproc://streams");
    talk_at(ipc);
    talk_at(abstract);
    talk_at("nng+tcp://127.0.0.1:0");
    tempdir_close(&dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_server_stream_is_read_in_order_to_its_end),
        TEST(a_stream_may_be_empty),
        TEST(what_came_before_a_failure_is_read_before_it),
        TEST(a_client_stream_is_answered_once),
        TEST(a_conversation_goes_to_and_fro),
        TEST(after_the_clients_end_the_server_still_speaks),
        TEST(a_slow_reader_stops_its_writer_and_nobody_else),
        TEST(a_message_over_the_window_goes_all_the_same),
        TEST(giving_up_reaches_the_handler),
        TEST(a_writer_that_waits_for_room_is_woken_by_the_end),
        TEST(the_deadline_ends_both_ends),
        TEST(drain_lets_a_stream_end_and_takes_no_new_one),
        TEST(stop_cuts_a_stream_that_does_not_end),
        TEST(a_message_over_a_limit_is_refused),
        TEST(more_streams_than_the_server_takes_are_refused),
        TEST(the_example_quota_ends_a_stream_that_brings_too_much),
        TEST(streams_go_over_every_transport),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
