#include "echo_world.h"

#include "connection_inside.h"
#include "fake_clock.h"
#include "server_inside.h"
#include "wire_client.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <time.h>

/* How long a connection lives, and what shortens its life (docs/operations.md):
 * the server's time is the test's. */

#define MINUTE_MS 60000
#define LOOK_MS 10
#define PATIENCE 2000 /* looks */

struct life {
    struct fake_clock clock;
    struct echo_world world;
    struct wire wire;
};

#define PEERS_MAX 8

/* Connections that are not over, referenced. */
static unsigned
list_connections(struct idem_server *server,
                 struct connection *connections[PEERS_MAX])
{
    unsigned n = 0;

    pthread_mutex_lock(&server->lock);
    for (struct peer *peer = server->peers; peer; peer = peer->next) {
        assert_true(n < PEERS_MAX);
        if (connection_ref_alive(peer->connection))
            connections[n++] = peer->connection;
    }
    pthread_mutex_unlock(&server->lock);
    return n;
}

static unsigned
count_sending(struct idem_server *server)
{
    struct connection *connections[PEERS_MAX];
    unsigned sending = 0, n = list_connections(server, connections);

    for (unsigned i = 0; i < n; i++) {
        pthread_mutex_lock(&connections[i]->lock);
        sending += connections[i]->sending;
        pthread_mutex_unlock(&connections[i]->lock);
        connection_unref(connections[i]);
    }
    return sending;
}

/* What was answered has left, but for that many connections: time that goes by
 * is theirs. */
static void
await_quiet(struct life *life, unsigned but)
{
    while (count_sending(life->world.server) > but)
        sched_yield();
}

static void
assert_works(struct life *life)
{
    struct echo_result result = echo_world_call(&life->world, 42, 42, NULL);

    assert_echoed(&result, 42, 42);
}

static void
open_life(struct life *life, struct echo_options options)
{
    fake_clock_init(&life->clock);
    options.server.clock = &life->clock.clock;
    echo_world_open(&life->world, &options);
    assert_works(life); /* its channel is connected */
    wire_connect(&life->wire, life->world.address);
    wire_hello(&life->wire, 0);
    wire_ping(&life->wire); /* it has our SETTINGS, too */
    await_quiet(life, 0);
}

static void
close_life(struct life *life)
{
    wire_close(&life->wire);
    echo_world_close(&life->world);
    fake_clock_fini(&life->clock);
}

static void
open_call(struct life *life, uint32_t stream, const char *method)
{
    struct header_open open = {.method = idem_bytes_of(method)};

    wire_open(&life->wire, stream, &open,
              (struct idem_bytes){(const uint8_t *)"", 0});
}

static void
assert_works_or_was_not_begun(struct life *life)
{
    struct echo_result result;

    do {
        result = echo_world_call(&life->world, 42, 42, NULL);
        assert_true(result.outcome.effect == IDEM_EFFECT_COMMITTED ||
                    result.outcome.effect <= IDEM_EFFECT_REFUSED);
    } while (result.status == IDEM_UNAVAILABLE);
    assert_echoed(&result, 42, 42);
}

/* The next frame is a GOAWAY for that reason. */
static struct header_goaway
assert_goaway(struct life *life, const char *reason)
{
    struct header_goaway goaway;
    struct frame frame;

    assert_true(wire_next(&life->wire, &frame));
    assert_int_equal(frame.type, FRAME_GOAWAY);
    assert_true(header_goaway_read(frame.header, &goaway));
    assert_true(idem_bytes_equal(goaway.reason, idem_bytes_of(reason)));
    return goaway;
}

/* The server has closed the wire's connection; what it said before is taken. */
static bool
is_closed(struct life *life)
{
    struct pollfd in = {.fd = life->wire.fd, .events = POLLIN};
    struct frame frame;

    if (poll(&in, 1, LOOK_MS) <= 0)
        return false;
    return !wire_next(&life->wire, &frame);
}

/* Move the time, look after look, until it has. */
static void
advance_until_closed(struct life *life, int64_t step_ms)
{
    unsigned looks = 0;

    do {
        assert_true(looks++ < PATIENCE);
        fake_clock_advance_ms(&life->clock, step_ms);
    } while (!is_closed(life));
}

/* Move the time, look after look, until the server has no more than so many
 * connections. */
static void
advance_until_open(struct life *life, unsigned open, int64_t step_ms)
{
    struct idem_server *server = life->world.server;
    struct timespec soon;
    bool over = false;

    for (unsigned i = 0; i < PATIENCE && !over; i++) {
        fake_clock_advance_ms(&life->clock, step_ms);
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += LOOK_MS * 1000000;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        pthread_mutex_lock(&server->lock);
        over = server->n_open <= open;
        if (!over)
            pthread_cond_timedwait(&server->changed, &server->lock, &soon);
        pthread_mutex_unlock(&server->lock);
    }
    assert_true(over);
}

static void
a_connection_without_calls_is_told_to_go_and_then_cut(void **state)
{
    struct echo_options options = {.server = {.idle_timeout_ms = 5 * MINUTE_MS,
                                              .stall_timeout_ms = MINUTE_MS,
                                              .age_grace_ms = 1000}};
    struct life life;

    (void)state;
    open_life(&life, options);
    fake_clock_advance_ms(&life.clock, 5 * MINUTE_MS + 1);
    assert_goaway(&life, "idle");
    advance_until_closed(&life, 1001);
    close_life(&life);
}

static void
a_call_keeps_its_connection(void **state)
{
    struct echo_options options = {
        .server = {.idle_timeout_ms = MINUTE_MS, .stall_timeout_ms = 1000}};
    struct life life;

    (void)state;
    open_life(&life, options);
    open_call(&life, 1, ECHO_BLOCK_METHOD);
    echo_world_await_inside(&life.world, 1);
    fake_clock_advance_ms(&life.clock, 3 * MINUTE_MS);
    wire_ping(&life.wire); /* no GOAWAY before it */
    echo_world_open_gate(&life.world);
    assert_int_equal(wire_end(&life.wire, 1).status, IDEM_OK);
    close_life(&life);
}

/* Its calls end; what comes after is refused; in the end it is cut. */
static void
an_old_connection_is_told_to_go_and_its_calls_end(void **state)
{
    struct echo_options options = {
        .server = {.max_age_ms = 10 * MINUTE_MS, .age_grace_ms = MINUTE_MS}};
    struct life life;
    struct header_end end;

    (void)state;
    open_life(&life, options);
    open_call(&life, 1, ECHO_BLOCK_METHOD);
    echo_world_await_inside(&life.world, 1);
    fake_clock_advance_ms(&life.clock, 11 * MINUTE_MS + 1); /* and 10 % */
    assert_int_equal(assert_goaway(&life, "max_age").last_stream, 1);
    open_call(&life, 2, ECHO_ECHO_METHOD);
    end = wire_end(&life.wire, 2);
    assert_int_equal(end.status, IDEM_UNAVAILABLE);
    assert_int_equal(end.effect, IDEM_EFFECT_REFUSED);
    echo_world_open_gate(&life.world);
    assert_int_equal(wire_end(&life.wire, 1).status, IDEM_OK);
    advance_until_closed(&life, MINUTE_MS + 1);
    close_life(&life);
}

static void
a_call_that_outlives_the_grace_is_cut(void **state)
{
    struct echo_options options = {
        .server = {.max_age_ms = 10 * MINUTE_MS, .age_grace_ms = MINUTE_MS}};
    struct life life;

    (void)state;
    open_life(&life, options);
    open_call(&life, 1, ECHO_BLOCK_METHOD);
    echo_world_await_inside(&life.world, 1);
    fake_clock_advance_ms(&life.clock, 11 * MINUTE_MS + 1);
    assert_goaway(&life, "max_age");
    advance_until_closed(&life, MINUTE_MS + 1);
    close_life(&life);
}

/* The channel takes a new connection; a call that met the old one as it went
 * was not begun, and is made again by whoever retries (here: nobody does). */
static void
a_channel_outlives_its_connections(void **state)
{
    enum { ROUNDS = 5 };
    struct echo_options options = {
        .server = {.max_age_ms = 10 * MINUTE_MS, .age_grace_ms = INT64_MAX}};
    struct life life;

    (void)state;
    open_life(&life, options);
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_works_or_was_not_begun(&life);
        await_quiet(&life, 0);
        fake_clock_advance_ms(&life.clock, 12 * MINUTE_MS);
    }
    close_life(&life);
}

static void
who_asks_all_the_time_is_told_which_rule_it_broke(void **state)
{
    struct echo_options options = {.server = {.max_pings = 3}};
    const struct frame ping = {.type = FRAME_PING};
    struct life life;

    (void)state;
    open_life(&life, options);
    for (unsigned i = 0; i < 2; i++) /* one was sent when it was opened */
        wire_ping(&life.wire);
    fake_clock_advance_ms(&life.clock, MINUTE_MS);
    for (unsigned i = 0; i < 3; i++)
        wire_ping(&life.wire);
    wire_send(&life.wire, &ping);
    assert_goaway(&life, "max_pings");
    wire_await_close(&life.wire);
    assert_works(&life);
    close_life(&life);
}

/* B105: half a frame, and then nothing. */
static void
half_a_frame_is_not_waited_for(void **state)
{
    static const uint8_t half[] = {200, 0, 0, 0, FRAME_OPEN, 3};
    struct echo_options options = {.server = {.stall_timeout_ms = 1000}};
    struct life life;

    (void)state;
    open_life(&life, options);
    wire_write(&life.wire, half, sizeof half);
    assert_works(&life);
    await_quiet(&life, 0);
    advance_until_closed(&life, 1001);
    assert_works(&life);
    close_life(&life);
}

/* One byte of a small frame a second: it moves, but not enough. */
static void
a_byte_at_a_time_is_too_slow(void **state)
{
    struct echo_options options = {.server = {.stall_timeout_ms = 5000}};
    static const uint8_t head[FRAME_HEAD] = {200, 0, 0, 0, FRAME_OPEN, 3};
    struct life life;

    (void)state;
    open_life(&life, options);
    for (unsigned i = 0; i < 5; i++) {
        wire_write(&life.wire, &head[i], 1);
        fake_clock_advance_ms(&life.clock, 1000);
    }
    advance_until_closed(&life, 1000);
    close_life(&life);
}

/* A large message may take as long as its size allows. */
static void
a_large_message_has_more_time(void **state)
{
    static uint8_t body[80004] = {0x0a, 0x80, 0xf1, 0x04}; /* 80,000 bytes */
    struct echo_options options = {.server = {.stall_timeout_ms = 1000}};
    struct header_open open = {.method = idem_bytes_of(ECHO_ECHO_METHOD)};
    uint8_t head[FRAME_HEAD], header[128];
    struct frame frame = {
        .type = FRAME_OPEN,
        .flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE,
        .stream = 1,
        .header = {header, 0},
        .payload = {body, sizeof body},
    };
    struct life life;

    (void)state;
    open_life(&life, options);
    frame.header.size = header_open_write(header, sizeof header, &open, NULL);
    frame_head_write(head, &frame);
    wire_write(&life.wire, head, sizeof head);
    wire_write(&life.wire, header, frame.header.size);
    wire_write(&life.wire, body, 4);
    assert_works(&life);
    fake_clock_advance_ms(&life.clock, 9000); /* of 1,000 and 10,000 */
    assert_works(&life);
    wire_write(&life.wire, body + 4, sizeof body - 4);
    assert_int_equal(wire_end(&life.wire, 1).status, IDEM_OK);
    close_life(&life);
}

/* Its answers wait in our memory, up to a bound, and not for ever. */
static void
who_does_not_read_is_cut(void **state)
{
    enum { CALLS = 400 };
    struct echo_options options = {.server = {.idle_timeout_ms = INT64_MAX}};
    static uint8_t message[] = {0x08, 0x80, 0x80, 0x04}; /* size 65536 */
    struct header_open open = {.method = idem_bytes_of(ECHO_GROW_METHOD)};
    struct life life;

    (void)state;
    open_life(&life, options);
    for (uint32_t i = 1; i <= CALLS; i++)
        wire_open(&life.wire, i, &open,
                  (struct idem_bytes){message, sizeof message});
    assert_works(&life);
    await_quiet(&life, 1);
    advance_until_open(&life, 1, 5 * MINUTE_MS);
    assert_works(&life);
    close_life(&life);
}

static void
times_are_not_negative(void **state)
{
    const struct idem_server_options wrong[] = {
        {.stall_timeout_ms = -1},
        {.idle_timeout_ms = -1},
        {.max_age_ms = -1},
        {.age_grace_ms = -1},
    };
    struct idem_server *server = NULL;
    struct idem_error err;

    (void)state;
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(idem_server_new(&server, &wrong[i], &err),
                         IDEM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "negative"));
    }
}

#define TEST(name) cmocka_unit_test(name)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_connection_without_calls_is_told_to_go_and_then_cut),
        TEST(a_call_keeps_its_connection),
        TEST(an_old_connection_is_told_to_go_and_its_calls_end),
        TEST(a_call_that_outlives_the_grace_is_cut),
        TEST(a_channel_outlives_its_connections),
        TEST(who_asks_all_the_time_is_told_which_rule_it_broke),
        TEST(half_a_frame_is_not_waited_for),
        TEST(a_byte_at_a_time_is_too_slow),
        TEST(a_large_message_has_more_time),
        TEST(who_does_not_read_is_cut),
        TEST(times_are_not_negative),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
