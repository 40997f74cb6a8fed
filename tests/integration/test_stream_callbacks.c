/* Streams in callback style, on both sides, on threads of the library and in an
 * event loop of the caller's. */
#include "flow_world.h"

#include <poll.h>
#include <string.h>

#define WINDOW 16384
#define STREAMS 64

static struct flow_world world;

/* One stream that writes so many notes and takes what comes. */
struct talk {
    uint64_t count, size; /* to write */
    uint64_t written;     /* the stream's own threads, one at a time … */
    uint64_t taken;       /* … */
    unsigned refuse;      /* … messages that are not taken at first */
    bool out_of_order;    /* … */
    pthread_t told_on;
    enum idem_status status;
    uint64_t sum;
    atomic_uint ended;
};

static void
open_world_with(bool own_loop, const struct idem_compression *compression)
{
    const struct flow_options options = {
        .server = {.stream_window = WINDOW, .compression = *compression},
        .channel = {.stream_window = WINDOW,
                    .own_loop = own_loop,
                    .compression = *compression},
    };

    flow_world_open(&world, &options);
}

static void
open_world(bool own_loop)
{
    open_world_with(own_loop,
                    &(struct idem_compression){.codec = IDEM_CODEC_NONE});
}

static void
end_talk(struct talk *talk, const struct idem_outcome *outcome)
{
    talk->told_on = pthread_self();
    talk->status = outcome->status;
    pthread_mutex_lock(&world.lock);
    atomic_fetch_add(&talk->ended, 1);
    pthread_cond_broadcast(&world.change);
    pthread_mutex_unlock(&world.lock);
}

/* --- A bidirectional one --- */

static void
chat_write(struct flow_chat_async_stream *stream)
{
    struct talk *talk = flow_chat_async_user(stream);

    for (; talk->written < talk->count; talk->written++)
        if (flow_chat_async_write(
                stream, flow_note_of(talk->written + 1, talk->size)) != IDEM_OK)
            return; /* writable goes on, perhaps already */
    flow_chat_async_end(stream);
}

static bool
chat_message(struct flow_chat_async_stream *stream, const flow_note *note)
{
    struct talk *talk = flow_chat_async_user(stream);

    if (talk->refuse > 0) {
        talk->refuse--;
        return false;
    }
    talk->out_of_order |= note->number != ++talk->taken;
    return true;
}

static void
chat_end(struct flow_chat_async_stream *stream,
         const struct idem_outcome *outcome)
{
    end_talk(flow_chat_async_user(stream), outcome);
}

static const struct flow_chat_async_callbacks chat_callbacks = {
    .message = chat_message,
    .writable = chat_write,
    .end = chat_end,
};

static struct flow_chat_async_stream *
start_chat(struct talk *talk)
{
    const struct idem_call_options options = {.user = talk,
                                              .timeout_ms = 30000};

    return flow_chat_async_start(world.channel, &options, &chat_callbacks);
}

static void
assert_talked(const struct talk *talk)
{
    assert_int_equal(talk->ended, 1);
    assert_int_equal(talk->status, IDEM_OK);
    assert_int_equal(talk->taken, talk->count);
    assert_false(talk->out_of_order);
}

static void
talk_at_once(const struct idem_compression *compression)
{
    static struct talk talks[STREAMS];
    struct flow_chat_async_stream *streams[STREAMS];

    memset(talks, 0, sizeof talks);
    open_world_with(false, compression);
    for (unsigned i = 0; i < STREAMS; i++) {
        talks[i].count = 200;
        talks[i].size = 50 * i;
        streams[i] = start_chat(&talks[i]);
        chat_write(streams[i]); /* the first word is the starter's */
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        flow_world_await(&world, &talks[i].ended, 1);
        assert_talked(&talks[i]);
        flow_chat_async_release(streams[i]);
    }
    flow_world_close(&world);
}

static void
many_streams_talk_at_once_without_a_thread_each(void **state)
{
    (void)state;
    talk_at_once(&(struct idem_compression){.codec = IDEM_CODEC_NONE});
}

static void
many_streams_talk_compressed(void **state)
{
    (void)state;
    talk_at_once(&(struct idem_compression){.codec = IDEM_CODEC_ZSTD});
}

static void
a_message_that_is_not_taken_comes_again(void **state)
{
    struct talk talk = {.count = 3, .size = 1, .refuse = 2};
    struct flow_chat_async_stream *stream;

    (void)state;
    open_world(false);
    stream = start_chat(&talk);
    chat_write(stream);
    flow_world_await(&world, &world.ended, 1);
    while (atomic_load(&talk.ended) == 0)
        flow_chat_async_resume(stream);
    assert_talked(&talk);
    flow_chat_async_release(stream);
    flow_world_close(&world);
}

static void
closing_the_channel_ends_what_is_not_taken(void **state)
{
    struct talk talk = {.count = 3, .size = 1, .refuse = UINT32_MAX};
    struct flow_chat_async_stream *stream;

    (void)state;
    open_world(false);
    stream = start_chat(&talk);
    chat_write(stream);
    flow_world_await(&world, &world.ended, 1);
    flow_chat_async_release(stream);
    idem_channel_close(world.channel);
    world.channel = NULL;
    assert_int_equal(talk.ended, 1);
    flow_world_close(&world);
}

static void
in_a_loop_of_the_callers_nothing_runs_elsewhere(void **state)
{
    struct talk talk = {.count = 500, .size = 100};
    struct flow_chat_async_stream *stream;

    (void)state;
    open_world(true);
    stream = start_chat(&talk);
    chat_write(stream);
    while (atomic_load(&talk.ended) == 0) {
        struct pollfd fd = {.fd = idem_channel_fd(world.channel),
                            .events = POLLIN};

        assert_true(poll(&fd, 1, 20000) > 0);
        (void)idem_channel_process(world.channel);
    }
    assert_talked(&talk);
    assert_true(pthread_equal(talk.told_on, pthread_self()));
    flow_chat_async_release(stream);
    flow_world_close(&world);
}

/* --- The other two kinds --- */

static bool
count_message(struct flow_count_async_stream *stream, const flow_note *note)
{
    struct talk *talk = flow_count_async_user(stream);

    talk->out_of_order |= note->number != ++talk->taken;
    return true;
}

static void
count_end(struct flow_count_async_stream *stream,
          const struct idem_outcome *outcome)
{
    end_talk(flow_count_async_user(stream), outcome);
}

static const struct flow_count_async_callbacks count_callbacks = {
    .message = count_message,
    .end = count_end,
};

static void
a_server_stream_in_callbacks_waits_for_room(void **state)
{
    struct talk talk = {.count = 1000};
    const struct idem_call_options options = {.user = &talk};
    flow_count_request request = FLOW_COUNT_REQUEST_INIT;
    struct flow_count_async_stream *stream;

    (void)state;
    open_world(false);
    request.count = talk.count;
    request.size = 1000;
    stream = flow_count_async_start(world.channel, &request, &options,
                                    &count_callbacks);
    flow_world_await(&world, &talk.ended, 1);
    assert_talked(&talk);
    flow_count_async_release(stream);
    flow_world_close(&world);
}

/* rpc 26, 27: of who has let go of it all the same. */
static void
a_stream_whose_handle_is_dropped_goes_on_to_its_end(void **state)
{
    struct talk talk = {.count = 1000};
    const struct idem_call_options options = {.user = &talk};
    flow_count_request request = FLOW_COUNT_REQUEST_INIT;

    (void)state;
    open_world(false);
    request.count = talk.count;
    request.size = 1000;
    flow_count_async_release(flow_count_async_start(
        world.channel, &request, &options, &count_callbacks));
    flow_world_await(&world, &talk.ended, 1);
    assert_talked(&talk);
    flow_world_close(&world);
}

/* More than a connection holds unwritten: its streams take turns. */
static void
many_server_streams_share_a_connection(void **state)
{
    static struct talk talks[STREAMS];
    struct flow_count_async_stream *streams[STREAMS];
    flow_count_request request = FLOW_COUNT_REQUEST_INIT;

    (void)state;
    memset(talks, 0, sizeof talks);
    flow_world_open(&world, NULL);
    request.count = 600;
    request.size = 1000;
    for (unsigned i = 0; i < STREAMS; i++) {
        const struct idem_call_options options = {.user = &talks[i],
                                                  .timeout_ms = 30000};

        talks[i].count = request.count;
        streams[i] = flow_count_async_start(world.channel, &request, &options,
                                            &count_callbacks);
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        flow_world_await(&world, &talks[i].ended, 1);
        assert_talked(&talks[i]);
        flow_count_async_release(streams[i]);
    }
    flow_world_close(&world);
}

static void
sum_write(struct flow_sum_async_stream *stream)
{
    struct talk *talk = flow_sum_async_user(stream);

    for (; talk->written < talk->count; talk->written++)
        if (flow_sum_async_write(
                stream, flow_note_of(talk->written + 1, talk->size)) != IDEM_OK)
            return;
    flow_sum_async_end(stream);
}

static void
sum_end(struct flow_sum_async_stream *stream, const flow_sum_reply *reply,
        const struct idem_outcome *outcome)
{
    struct talk *talk = flow_sum_async_user(stream);

    talk->sum = reply ? reply->sum : 0;
    talk->taken = reply ? reply->count : 0;
    end_talk(talk, outcome);
}

static const struct flow_sum_async_callbacks sum_callbacks = {
    .writable = sum_write,
    .end = sum_end,
};

static void
a_client_stream_in_callbacks_has_one_reply(void **state)
{
    struct talk talk = {.count = 1000, .size = 500};
    const struct idem_call_options options = {.user = &talk};
    struct flow_sum_async_stream *stream;

    (void)state;
    open_world(false);
    stream = flow_sum_async_start(world.channel, &options, &sum_callbacks);
    sum_write(stream);
    flow_world_await(&world, &talk.ended, 1);
    assert_talked(&talk);
    assert_int_equal(talk.sum, 500500);
    flow_sum_async_release(stream);
    flow_world_close(&world);
}

static void
giving_up_ends_the_callbacks_of_both_sides(void **state)
{
    struct talk talk = {.count = UINT64_MAX, .size = 100};
    struct flow_chat_async_stream *stream;

    (void)state;
    open_world(false);
    stream = start_chat(&talk);
    chat_write(stream);
    flow_world_await(&world, &world.sent, 100);
    flow_chat_async_cancel(stream);
    flow_world_await(&world, &talk.ended, 1);
    assert_int_equal(talk.status, IDEM_CANCELLED);
    flow_world_await(&world, &world.given_up, 1);
    flow_chat_async_release(stream);
    flow_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_streams_talk_at_once_without_a_thread_each),
        cmocka_unit_test(many_streams_talk_compressed),
        cmocka_unit_test(a_message_that_is_not_taken_comes_again),
        cmocka_unit_test(closing_the_channel_ends_what_is_not_taken),
        cmocka_unit_test(in_a_loop_of_the_callers_nothing_runs_elsewhere),
        cmocka_unit_test(a_server_stream_in_callbacks_waits_for_room),
        cmocka_unit_test(a_stream_whose_handle_is_dropped_goes_on_to_its_end),
        cmocka_unit_test(many_server_streams_share_a_connection),
        cmocka_unit_test(a_client_stream_in_callbacks_has_one_reply),
        cmocka_unit_test(giving_up_ends_the_callbacks_of_both_sides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
