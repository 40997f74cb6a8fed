/* What io.h promises, between two ends of a real connection: of each transport
 * that goes over the system's sockets. */
#include "io_world.h"

#include <unistd.h>

#define PIECE 65536

static void
moved(void *with, enum idem_status result, size_t size)
{
    event_tell(with, result, size, NULL);
}

/* Byte number at of what is sent. */
static uint8_t
byte_at(size_t at)
{
    return (uint8_t)(at * 31 + at / 251);
}

static void
fill(uint8_t piece[PIECE], size_t from)
{
    for (size_t i = 0; i < PIECE; i++)
        piece[i] = byte_at(from + i);
}

static void
check_received(struct io_stream *stream, size_t total)
{
    static uint8_t buffer[PIECE];
    struct event received = EVENT;

    for (size_t at = 0; at < total; at += received.size) {
        assert_true(stream->ops->recv(stream, buffer, sizeof(buffer), moved,
                                      &received));
        event_await(&received);
        assert_int_equal(received.result, IDEM_OK);
        for (size_t i = 0; i < received.size; i++)
            assert_int_equal(buffer[i], byte_at(at + i));
    }
}

static void
what_does_not_go_at_once_goes_on_behind_it(void **state)
{
    static uint8_t piece[PIECE];
    struct world *w = *state;
    struct io_stream *near = w->near;
    struct event sent = EVENT;
    struct idem_bytes rest = {piece, PIECE};
    size_t total = 0, now;

    /* Nobody reads: the socket takes less and less, and then nothing. */
    fill(piece, 0);
    while ((now = near->ops->send_now(near, &rest, 1)) > 0) {
        total += now;
        rest.data += now;
        rest.size -= now;
        if (rest.size == 0) {
            fill(piece, total);
            rest = (struct idem_bytes){piece, PIECE};
        }
    }
    assert_true(total > 0);
    assert_true(near->ops->send(near, &rest, 1, moved, &sent));
    check_received(w->far, total + rest.size);
    event_await(&sent);
    assert_int_equal(sent.result, IDEM_OK);
    assert_int_equal(sent.size, rest.size);
}

static void
parts_go_at_once_in_their_order(void **state)
{
    static uint8_t piece[PIECE];
    struct world *w = *state;
    const struct idem_bytes parts[] = {
        {piece, 10}, {piece + 10, 1}, {piece + 11, 500}};

    fill(piece, 0);
    assert_int_equal(w->near->ops->send_now(w->near, parts, 3), 511);
    check_received(w->far, 511);
}

static void
nothing_goes_after_close(void **state)
{
    struct world *w = *state;
    const struct idem_bytes part = idem_bytes_of("late");
    struct event sent = EVENT;

    w->near->ops->close(w->near);
    assert_int_equal(w->near->ops->send_now(w->near, &part, 1), 0);
    assert_false(w->near->ops->send(w->near, &part, 1, moved, &sent));
}

/* A receive that is under way, of up to 100 bytes. */
struct pending {
    struct event event;
    uint8_t buffer[100];
};

#define PENDING                                                                \
    {                                                                          \
        EVENT,                                                                 \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

static void
begin_receive(struct io_stream *stream, struct pending *pending)
{
    assert_true(stream->ops->recv(stream, pending->buffer,
                                  sizeof(pending->buffer), moved,
                                  &pending->event));
}

static void
what_came_before_the_peers_end_is_read_and_then_its_end(void **state)
{
    struct world *w = *state;
    const struct idem_bytes part = idem_bytes_of("last words");
    struct pending pending = PENDING;

    assert_int_equal(w->near->ops->send_now(w->near, &part, 1), part.size);
    w->near->ops->close(w->near);
    begin_receive(w->far, &pending);
    event_await(&pending.event);
    assert_int_equal(pending.event.size, part.size);
    assert_memory_equal(pending.buffer, part.data, part.size);
    begin_receive(w->far, &pending);
    event_await(&pending.event);
    assert_true(pending.event.size == 0);
}

static void
a_receive_that_waits_is_answered_by_ones_own_close(void **state)
{
    struct world *w = *state;
    struct pending pending = PENDING;

    begin_receive(w->far, &pending);
    w->far->ops->close(w->far);
    w->far->ops->close(w->far);
    event_await(&pending.event);
    assert_true(pending.event.size == 0);
    assert_false(
        w->far->ops->recv(w->far, pending.buffer, 1, moved, &pending.event));
}

static void
bytes_that_nobody_waited_for_are_there_later(void **state)
{
    struct world *w = *state;
    const struct idem_bytes part = idem_bytes_of("0123456789");
    uint8_t buffer[4];
    struct event received = EVENT;
    struct pending other = PENDING;

    assert_int_equal(w->near->ops->send_now(w->near, &part, 1), part.size);
    for (size_t at = 0; at < part.size; at += received.size) {
        assert_true(w->far->ops->recv(w->far, buffer, sizeof(buffer), moved,
                                      &received));
        event_await(&received);
        assert_memory_equal(buffer, part.data + at, received.size);
    }
    /* Nothing is left: the next waits for what comes next. */
    begin_receive(w->far, &other);
    assert_int_equal(w->near->ops->send_now(w->near, &part, 1), part.size);
    event_await(&other.event);
    assert_int_equal(other.event.size, part.size);
}

static void
a_send_that_waits_for_room_fails_when_the_peer_goes(void **state)
{
    static uint8_t piece[PIECE];
    struct world *w = *state;
    const struct idem_bytes part = {piece, PIECE};
    struct event sent = EVENT;

    while (w->near->ops->send_now(w->near, &part, 1) > 0)
        continue;
    assert_true(w->near->ops->send(w->near, &part, 1, moved, &sent));
    end_of(w->far);
    event_await(&sent);
    /* Room may have come meanwhile, but nobody takes what is in it. */
    while (sent.result == IDEM_OK) {
        assert_true(w->near->ops->send(w->near, &part, 1, moved, &sent));
        event_await(&sent);
    }
    assert_int_equal(sent.result, IDEM_UNAVAILABLE);
    w->far = dial_once(w->listener->ops->address(w->listener));
    assert_non_null(w->far);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_ALL(what_does_not_go_at_once_goes_on_behind_it),
        OVER_ALL(parts_go_at_once_in_their_order),
        OVER_ALL(nothing_goes_after_close),
        OVER_ALL(what_came_before_the_peers_end_is_read_and_then_its_end),
        OVER_ALL(a_receive_that_waits_is_answered_by_ones_own_close),
        OVER_ALL(bytes_that_nobody_waited_for_are_there_later),
        OVER_ALL(a_send_that_waits_for_room_fails_when_the_peer_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
