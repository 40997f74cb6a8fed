/* Peers that are slow, or fall silent, in the middle of a stream: over tcp and
 * over TLS each hurts only itself. */
#include "flow_world.h"

#include "fake_clock.h"
#include "server_inside.h"
#include "tls.h"
#include "tls_world.h"

#include <semaphore.h>
#include <string.h>
#include <time.h>

#define STALL_MS 5000
#define SECOND_MS 1000
#define PATIENCE 600 /* seconds of the server's */
#define LOOK_MS 5
#define WINDOW 0x7fffffff

/* Both transports, in turn: a test's state. */
enum transport { OVER_TCP, OVER_TLS };

/* A peer that says what it is told to, and reads no more than it is told to. */
struct slow {
    struct tls *tls; /* NULL: over tcp */
    struct io_stream *stream;
    sem_t done;
    size_t size; /* that the last operation moved; 0: it failed */
};

struct scene {
    struct fake_clock clock; /* the server's */
    struct tls_world tls;
    struct flow_world world;
    struct slow slow;
};

static struct scene scene;

/* --- The slow one --- */

static void
note(void *with, enum idem_status result, size_t size)
{
    struct slow *slow = with;

    slow->size = result == IDEM_OK ? size : 0;
    sem_post(&slow->done);
}

static void
opened(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct slow *slow = with;

    if (!stream)
        print_error("%s\n", err->message);
    slow->stream = stream;
    sem_post(&slow->done);
}

static void
say(struct slow *slow, const void *bytes, size_t size)
{
    const struct idem_bytes part = {bytes, size};

    assert_true(slow->stream->ops->send(slow->stream, &part, 1, note, slow));
    sem_wait(&slow->done);
    assert_int_equal(slow->size, size);
}

/* The server's preface and SETTINGS are more than these. */
static void
hear_hello(struct slow *slow)
{
    uint8_t bytes[512];
    size_t heard = 0;

    while (heard < FRAME_PREFACE + FRAME_HEAD) {
        assert_true(slow->stream->ops->recv(slow->stream, bytes, sizeof bytes,
                                            note, slow));
        sem_wait(&slow->done);
        assert_true(slow->size > 0);
        heard += slow->size;
    }
}

static void
say_frame(struct slow *slow, const struct frame *frame)
{
    uint8_t bytes[512];

    assert_true(FRAME_HEAD + frame->header.size + frame->payload.size <=
                sizeof bytes);
    frame_head_write(bytes, frame);
    if (frame->header.size > 0)
        memcpy(bytes + FRAME_HEAD, frame->header.data, frame->header.size);
    if (frame->payload.size > 0)
        memcpy(bytes + FRAME_HEAD + frame->header.size, frame->payload.data,
               frame->payload.size);
    say(slow, bytes, FRAME_HEAD + frame->header.size + frame->payload.size);
}

static void
say_hello(struct slow *slow)
{
    const struct header_settings settings = {
        .version = FRAME_VERSION, .max_streams = 1, .stream_window = WINDOW};
    uint8_t preface[FRAME_PREFACE], header[64];
    struct frame frame = {.type = FRAME_SETTINGS, .header = {header, 0}};

    frame_preface_write(preface);
    say(slow, preface, sizeof preface);
    frame.header.size = header_settings_write(header, sizeof header, &settings);
    say_frame(slow, &frame);
}

static void
open_stream(struct slow *slow, const char *method, uint32_t streams,
            struct idem_bytes request)
{
    const struct header_open open = {.method = idem_bytes_of(method),
                                     .streams = streams};
    uint8_t header[256];
    struct frame frame = {.type = FRAME_OPEN,
                          .stream = 1,
                          .header = {header, 0},
                          .payload = request};

    if (request.size > 0)
        frame.flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
    frame.header.size = header_open_write(header, sizeof header, &open, NULL);
    say_frame(slow, &frame);
    flow_world_await(&scene.world, &scene.world.ran, 2); /* that beside, too */
}

static void
meet(struct slow *slow, enum transport transport)
{
    const struct io *io = &io_socket;
    struct io_dialer *dialer;

    *slow = (struct slow){.tls = NULL};
    assert_int_equal(sem_init(&slow->done, 0, 0), 0);
    if (transport == OVER_TLS) {
        assert_int_equal(tls_new(&slow->tls, false, &scene.tls.client, NULL),
                         IDEM_OK);
        io = tls_io(slow->tls);
    }
    assert_int_equal(io->dialer(io, scene.world.address, &dialer, NULL),
                     IDEM_OK);
    assert_true(dialer->ops->dial(dialer, opened, slow));
    sem_wait(&slow->done);
    assert_non_null(slow->stream);
    dialer->ops->free(dialer);
    say_hello(slow);
    hear_hello(slow);
}

static void
part(struct slow *slow)
{
    slow->stream->ops->close(slow->stream);
    slow->stream->ops->free(slow->stream);
    tls_free(slow->tls);
    sem_destroy(&slow->done);
}

/* --- The scene --- */

static int
up(void **state)
{
    enum transport transport = *(const enum transport *)*state;
    struct flow_options options = {.server = {.clock = &scene.clock.clock,
                                              .stall_timeout_ms = STALL_MS,
                                              .idle_timeout_ms = INT64_MAX,
                                              .max_age_ms = INT64_MAX}};

    fake_clock_init(&scene.clock);
    tls_world_open(&scene.tls);
    if (transport == OVER_TLS) {
        options.address = "tls+tcp://127.0.0.1:0";
        options.server.tls = &scene.tls.server;
        options.channel.tls = &scene.tls.client;
    }
    flow_world_open(&scene.world, &options);
    flow_world_say(&scene.world, 1); /* its channel is connected */
    meet(&scene.slow, transport);
    return 0;
}

static int
down(void **state)
{
    (void)state;
    part(&scene.slow);
    flow_world_close(&scene.world);
    tls_world_close(&scene.tls);
    fake_clock_fini(&scene.clock);
    return 0;
}

/* Soon, or when one of its connections has ended: has it no more than the other
 * client's? */
static bool
has_cut(void)
{
    struct idem_server *server = scene.world.server;
    struct timespec soon;
    bool cut;

    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += LOOK_MS * 1000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    pthread_mutex_lock(&server->lock);
    if (server->n_open > 1)
        pthread_cond_timedwait(&server->changed, &server->lock, &soon);
    cut = server->n_open <= 1;
    pthread_mutex_unlock(&server->lock);
    return cut;
}

/* Another client's stream, which goes on beside the slow one. */
static struct flow_chat_stream *
open_beside(void)
{
    const struct idem_call_options options = {.timeout_ms = INT64_MAX};

    return flow_chat_open(scene.world.channel, &options);
}

static void
go_on(struct flow_chat_stream *stream, uint64_t number)
{
    assert_int_equal(flow_chat_write(stream, flow_note_of(number, 100)),
                     IDEM_OK);
    assert_note(flow_chat_next(stream), number, 100);
}

/* The seconds go by until the slow one is cut, and its handler told; the other
 * stream notices nothing. */
static void
assert_cut(struct flow_chat_stream *beside)
{
    unsigned seconds = 0;

    do {
        assert_true(seconds++ < PATIENCE);
        go_on(beside, seconds);
        fake_clock_advance_ms(&scene.clock, SECOND_MS);
    } while (!has_cut());
    flow_world_await(&scene.world, &scene.world.given_up, 1);
    go_on(beside, 0);
    flow_chat_end(beside);
    assert_null(flow_chat_next(beside));
    assert_int_equal(flow_chat_finish(beside, NULL), IDEM_OK);
}

/* --- What it does --- */

static const uint8_t head[FRAME_HEAD] = {
    200, 0, 0, 0, FRAME_MESSAGE, FRAME_FLAG_MESSAGE, 0, 0, 1};

/* B105: half a MESSAGE, and then nothing. */
static void
half_a_message_is_not_waited_for(void **state)
{
    struct flow_chat_stream *beside = open_beside();

    (void)state;
    go_on(beside, 1);
    open_stream(&scene.slow, FLOW_SUM_METHOD, IDEM_STREAMS_CLIENT,
                (struct idem_bytes){0});
    say(&scene.slow, head, sizeof head);
    assert_cut(beside);
}

/* A byte a second: it moves, but not enough. */
static void
a_message_of_a_byte_a_second_is_too_slow(void **state)
{
    struct flow_chat_stream *beside = open_beside();

    (void)state;
    go_on(beside, 1);
    open_stream(&scene.slow, FLOW_SUM_METHOD, IDEM_STREAMS_CLIENT,
                (struct idem_bytes){0});
    for (unsigned i = 0; i < STALL_MS / SECOND_MS; i++) {
        say(&scene.slow, &head[i], 1);
        fake_clock_advance_ms(&scene.clock, SECOND_MS);
    }
    assert_cut(beside);
}

/* It has credit for all of them, and reads none. */
static void
who_reads_no_message_is_cut(void **state)
{
    static const uint8_t request[] = {0x08, 0x80, 0x80, 0x40, /* 1,048,576 … */
                                      0x10, 0x80, 0x80, 0x04}; /* of 65,536 */
    struct flow_chat_stream *beside = open_beside();

    (void)state;
    go_on(beside, 1);
    open_stream(&scene.slow, FLOW_COUNT_METHOD, IDEM_STREAMS_SERVER,
                (struct idem_bytes){request, sizeof request});
    assert_cut(beside);
}

#define OVER(name, transport)                                                  \
    {                                                                          \
#name ", " #transport, name, up, down, (void *)(uintptr_t)&transport   \
    }
#define OVER_BOTH(name) OVER(name, tcp), OVER(name, tls)

int
main(void)
{
    static const enum transport tcp = OVER_TCP, tls = OVER_TLS;
    const struct CMUnitTest tests[] = {
        OVER_BOTH(half_a_message_is_not_waited_for),
        OVER_BOTH(a_message_of_a_byte_a_second_is_too_slow),
        OVER_BOTH(who_reads_no_message_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
