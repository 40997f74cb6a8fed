#include "support.h"

#include "io.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Two ends of a real tcp connection. */

#define PIECE 65536

struct event {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool over;
    enum idem_status result;
    size_t size;
    struct io_stream *stream;
};

#define EVENT                                                                  \
    {                                                                          \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0        \
    }

struct world {
    struct io_listener *listener;
    struct io_dialer *dialer;
    struct io_stream *near, *far;
};

static void
tell(struct event *event, enum idem_status result, size_t size,
     struct io_stream *stream)
{
    pthread_mutex_lock(&event->lock);
    event->over = true;
    event->result = result;
    event->size = size;
    event->stream = stream;
    pthread_cond_signal(&event->cond);
    pthread_mutex_unlock(&event->lock);
}

static void
opened(void *with, struct io_stream *stream, const struct idem_error *err)
{
    tell(with, err->status, 0, stream);
}

static void
moved(void *with, enum idem_status result, size_t size)
{
    tell(with, result, size, NULL);
}

static void
await(struct event *event)
{
    pthread_mutex_lock(&event->lock);
    while (!event->over)
        pthread_cond_wait(&event->cond, &event->lock);
    event->over = false;
    pthread_mutex_unlock(&event->lock);
}

static int
setup(void **state)
{
    static struct world world;
    struct event accepted = EVENT, dialed = EVENT;
    struct world *w = &world;

    assert_int_equal(
        io_nng.listen(&io_nng, "tcp://127.0.0.1:0", &w->listener, NULL),
        IDEM_OK);
    assert_int_equal(io_nng.dialer(&io_nng,
                                   w->listener->ops->address(w->listener),
                                   &w->dialer, NULL),
                     IDEM_OK);
    assert_true(w->listener->ops->accept(w->listener, opened, &accepted));
    assert_true(w->dialer->ops->dial(w->dialer, opened, &dialed));
    await(&accepted);
    await(&dialed);
    w->near = dialed.stream;
    w->far = accepted.stream;
    assert_non_null(w->near);
    assert_non_null(w->far);
    *state = w;
    return 0;
}

static void
end(struct io_stream *stream)
{
    stream->ops->close(stream);
    stream->ops->free(stream);
}

static int
teardown(void **state)
{
    struct world *w = *state;

    end(w->near);
    end(w->far);
    w->dialer->ops->free(w->dialer);
    w->listener->ops->free(w->listener);
    return 0;
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
        await(&received);
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
    await(&sent);
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

#define OVER_TCP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP(what_does_not_go_at_once_goes_on_behind_it),
        OVER_TCP(parts_go_at_once_in_their_order),
        OVER_TCP(nothing_goes_after_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
