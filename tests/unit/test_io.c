#include "support.h"

#include "io.h"
#include "tempdir.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What io.h promises, between two ends of a real connection: of each transport
 * that goes over the system's sockets. */

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
    struct tempdir dir;
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

/* The transport of an address. */
static const struct io *
transport(const char *address)
{
    const struct io *io = NULL;

    assert_int_equal(io_find(address, &io, NULL), IDEM_OK);
    return io;
}

static struct io_listener *
listen_at(const char *address)
{
    const struct io *io = transport(address);
    struct io_listener *listener = NULL;
    struct idem_error err;

    if (io->listen(io, address, &listener, &err) != IDEM_OK)
        fail_msg("%s", err.message);
    return listener;
}

static struct io_dialer *
dialer_to(const char *address)
{
    const struct io *io = transport(address);
    struct io_dialer *dialer = NULL;

    assert_int_equal(io->dialer(io, address, &dialer, NULL), IDEM_OK);
    return dialer;
}

/* Dials once; NULL: refused. */
static struct io_stream *
dial_once(const char *address)
{
    struct io_dialer *dialer = dialer_to(address);
    struct event dialed = EVENT;

    assert_true(dialer->ops->dial(dialer, opened, &dialed));
    await(&dialed);
    dialer->ops->free(dialer);
    return dialed.stream;
}

/* "tcp://127.0.0.1:0", or "ipc:" for a path in the world's folder. */
static void
name_place(struct world *w, const char *place, char address[256])
{
    char path[128];

    if (strstr(place, "://"))
        snprintf(address, 256, "%s", place);
    else
        snprintf(address, 256, "%s//%s", place,
                 tempdir_file(&w->dir, "io.sock", path, sizeof(path)));
}

static int
setup(void **state)
{
    static struct world world;
    struct event accepted = EVENT, dialed = EVENT;
    struct world *w = &world;
    char address[256];

    tempdir_open(&w->dir);
    name_place(w, *state, address);
    w->listener = listen_at(address);
    w->dialer = dialer_to(w->listener->ops->address(w->listener));
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
    tempdir_close(&w->dir);
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
    await(&pending.event);
    assert_int_equal(pending.event.size, part.size);
    assert_memory_equal(pending.buffer, part.data, part.size);
    begin_receive(w->far, &pending);
    await(&pending.event);
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
    await(&pending.event);
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
        await(&received);
        assert_memory_equal(buffer, part.data + at, received.size);
    }
    /* Nothing is left: the next waits for what comes next. */
    begin_receive(w->far, &other);
    assert_int_equal(w->near->ops->send_now(w->near, &part, 1), part.size);
    await(&other.event);
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
    end(w->far);
    await(&sent);
    /* Room may have come meanwhile, but nobody takes what is in it. */
    while (sent.result == IDEM_OK) {
        assert_true(w->near->ops->send(w->near, &part, 1, moved, &sent));
        await(&sent);
    }
    assert_int_equal(sent.result, IDEM_UNAVAILABLE);
    w->far = dial_once(w->listener->ops->address(w->listener));
    assert_non_null(w->far);
}

static void
nobody_connects_once_the_listener_is_closed(void **state)
{
    struct world *w = *state;
    char address[256];
    struct event accepted = EVENT;

    snprintf(address, sizeof(address), "%s",
             w->listener->ops->address(w->listener));
    assert_true(w->listener->ops->accept(w->listener, opened, &accepted));
    w->listener->ops->close(w->listener);
    await(&accepted);
    assert_null(accepted.stream);
    assert_null(dial_once(address));
    assert_false(w->listener->ops->accept(w->listener, opened, &accepted));
    /* The place is free again. */
    w->listener->ops->free(w->listener);
    w->listener = listen_at(address);
}

static void
a_place_is_taken_once(void **state)
{
    struct world *w = *state;
    const char *address = w->listener->ops->address(w->listener);
    const struct io *io = transport(address);
    struct io_listener *second;
    struct idem_error err;

    assert_int_equal(io->listen(io, address, &second, &err), IDEM_UNAVAILABLE);
    assert_non_null(strstr(err.message, address));
}

static void
a_name_is_looked_up(void **state)
{
    struct world *w = *state;
    const char *port = strrchr(w->listener->ops->address(w->listener), ':');
    struct event accepted = EVENT;
    struct io_stream *stream;
    char address[64];

    snprintf(address, sizeof(address), "tcp4://localhost%s", port);
    assert_true(w->listener->ops->accept(w->listener, opened, &accepted));
    stream = dial_once(address);
    await(&accepted);
    assert_non_null(stream);
    assert_non_null(strstr(stream->ops->peer(stream), "tcp://127.0.0.1:"));
    end(stream);
    end(accepted.stream);
    assert_null(dial_once("tcp://no-such-host.invalid:1"));
}

static void
a_dialer_that_is_closed_answers(void **state)
{
    static const char *const places[] = {"tcp://127.0.0.1:1",
                                         "tcp://no-such-host.invalid:1",
                                         "ipc:///no/such/path"};

    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct io_dialer *dialer = dialer_to(places[i]);
        struct event dialed = EVENT;

        assert_true(dialer->ops->dial(dialer, opened, &dialed));
        dialer->ops->close(dialer);
        await(&dialed);
        assert_null(dialed.stream);
        assert_false(dialer->ops->dial(dialer, opened, &dialed));
        dialer->ops->free(dialer);
    }
}

static void
a_path_that_a_killed_process_left_is_taken_over(void **state)
{
    struct tempdir dir;
    char path[100], address[128];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct io_listener *listener;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "left.sock", path, sizeof(path));
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    close(fd);
    snprintf(address, sizeof(address), "ipc://%s", path);
    listener = listen_at(address);
    listener->ops->free(listener);
    assert_int_not_equal(access(path, F_OK), 0);
    tempdir_close(&dir);
}

static void
addresses_that_break_a_rule_are_refused_and_the_rule_named(void **state)
{
    static const struct {
        const char *address, *rule;
    } cases[] = {
        {"tcp://localhost", "want a port"},
        {"tcp://localhost:", "want a port"},
        {"tcp://localhost:70000", "0 to 65535"},
        {"tcp://localhost:7x", "want a port"},
        {"tcp://[::1:7070", "[IPv6]"},
        {"tcp://me@localhost:7070", "a user before the @"},
        {"ipc:///a23456789/b23456789/c23456789/d23456789/e23456789/f23456789/"
         "g23456789/h23456789/i23456789/j23456789/k23456789",
         "107 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct io *io = transport(cases[i].address);
        struct io_listener *listener;
        struct io_dialer *dialer;
        struct idem_error err;

        assert_int_equal(io->listen(io, cases[i].address, &listener, &err),
                         IDEM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, cases[i].rule));
        assert_int_equal(io->dialer(io, cases[i].address, &dialer, &err),
                         IDEM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, cases[i].rule));
    }
}

/* Threads do not survive a fork: the child begins with its own. */
static void
a_child_has_connections_of_its_own(void **state)
{
    pid_t child;
    int status = -1;

#ifdef __SANITIZE_THREAD__
    skip(); /* it gives up when a child makes threads */
#endif
    assert_null(dial_once("tcp://127.0.0.1:1"));
    child = fork();
    if (child == 0) {
        struct io_listener *listener = listen_at("tcp://127.0.0.1:0");
        struct io_stream *stream = dial_once(listener->ops->address(listener));

        /* Its thread has things under way, which are no leaks. */
        if (stream)
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    setup(state);
    teardown(state);
}

#define OVER(place, test)                                                      \
    {                                                                          \
#test ", " place, test, setup, teardown, (void *)(uintptr_t)place      \
    }
#define OVER_ALL(test)                                                         \
    OVER("tcp://127.0.0.1:0", test), OVER("tcp6://[::1]:0", test),             \
        OVER("ipc:", test), OVER("nng+tcp://127.0.0.1:0", test),               \
        OVER("nng+ipc:", test)

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
        OVER_ALL(nobody_connects_once_the_listener_is_closed),
        OVER_ALL(a_place_is_taken_once),
        OVER("tcp://127.0.0.1:0", a_name_is_looked_up),
        cmocka_unit_test(a_dialer_that_is_closed_answers),
        cmocka_unit_test(a_path_that_a_killed_process_left_is_taken_over),
        cmocka_unit_test(
            addresses_that_break_a_rule_are_refused_and_the_rule_named),
        {"a_child_has_connections_of_its_own",
         a_child_has_connections_of_its_own, NULL, NULL,
         (void *)(uintptr_t) "tcp://127.0.0.1:0"},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
