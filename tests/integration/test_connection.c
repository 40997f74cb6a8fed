#include "support.h"

#include "connection.h"
#include "io_socket.h"
#include "wire_client.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/time.h>

/* One connection at a peer that speaks the wire by hand. */

#define FRAMES 64
#define LATE 60 /* the frame at which the reader looks for what has left */
#define NS_PER_MS 1000000
#define TRIES 20 /* a processor that is taken away at the wrong moment */

struct world {
    struct connection *connection;
    struct wire wire;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    unsigned answers; /* that have come, of this batch */
    unsigned early;   /* of them, while the batch was being worked at */
    bool gone;
    int64_t begun_ns, end_ns; /* of the batch */
};

static int64_t
now_ns(void)
{
    const struct idem_clock *clock = idem_clock_system();

    return clock->monotonic_ns(clock);
}

static void
await_time(int64_t ns)
{
    while (now_ns() < ns)
        continue;
}

/* --- The connection's side: each frame takes a microsecond --- */

static void
look(struct world *w)
{
    const struct idem_clock *clock = idem_clock_system();
    int64_t until_ns = now_ns() + 100 * NS_PER_MS;

    pthread_mutex_lock(&w->lock);
    while (w->answers == 0 && now_ns() < until_ns)
        clock->wait_until(clock, &w->changed, &w->lock, until_ns);
    w->early = w->answers;
    pthread_mutex_unlock(&w->lock);
}

static const char *
answer(void *with, const struct frame *frame)
{
    const struct frame end = {.type = FRAME_END, .stream = frame->stream};
    unsigned number = (frame->stream - 1) % FRAMES;
    struct world *w = with;

    if (number == 0)
        w->begun_ns = now_ns();
    await_time(now_ns() + 1000);
    connection_send(w->connection, &end);
    if (number == LATE)
        look(w);
    if (number == FRAMES - 1)
        w->end_ns = now_ns();
    return NULL;
}

static void
ignore(void *with)
{
    (void)with;
}

static void
gone(void *with)
{
    struct world *w = with;

    pthread_mutex_lock(&w->lock);
    w->gone = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static const struct connection_events events = {
    .ready = ignore,
    .frame = answer,
    .closed = ignore,
    .gone = gone,
};

static void
begin(struct world *w)
{
    const struct connection_options options = {
        .server = true,
        .limits = {.max_message = 1000, .max_streams = 1000},
        .clock = idem_clock_system(),
        .events = &events,
        .with = w,
    };
    struct timeval patience = {.tv_sec = 10};
    int ends[2];

    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    w->wire.fd = ends[0];
    w->connection = connection_new(socket_stream_new(ends[1]), &options);
    assert_non_null(w->connection);
    connection_start(w->connection);
    wire_hello(&w->wire, 0);
}

static void
end(struct world *w)
{
    wire_close(&w->wire);
    connection_unref(w->connection);
    pthread_mutex_lock(&w->lock);
    while (!w->gone)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

/* --- The peer's --- */

/* Frames that are read together, and all answers to them. */
static void
exchange(struct world *w, uint32_t first)
{
    uint8_t bytes[FRAMES][FRAME_HEAD];
    struct frame frame = {.type = FRAME_OPEN};

    for (unsigned i = 0; i < FRAMES; i++) {
        frame.stream = first + i;
        frame_head_write(bytes[i], &frame);
    }
    pthread_mutex_lock(&w->lock);
    w->answers = 0;
    pthread_mutex_unlock(&w->lock);
    wire_write(&w->wire, bytes, sizeof bytes);
    for (unsigned i = 0; i < FRAMES; i++) {
        assert_true(wire_next(&w->wire, &frame));
        assert_int_equal(frame.type, FRAME_END);
        assert_int_equal(frame.stream, first + i);
        pthread_mutex_lock(&w->lock);
        w->answers++;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
    }
}

static void
answers_leave_while_the_batch_is_worked_at_when_the_ends_take_turns(
    void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    for (uint32_t i = 0; w.early == 0; i++) {
        assert_true(i < TRIES);
        exchange(&w, 1 + i * FRAMES);
        /* The peer's turn takes longer than the work did. */
        await_time(w.end_ns + (w.end_ns - w.begun_ns) + NS_PER_MS);
    }
    end(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            answers_leave_while_the_batch_is_worked_at_when_the_ends_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
