/* What io.h promises of places: where somebody listens, how one gets there, and
 * what is left behind. */
#include "io_world.h"
#include "sanitizer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void
nobody_connects_once_the_listener_is_closed(void **state)
{
    struct world *w = *state;
    char address[256];
    struct event accepted = EVENT;

    snprintf(address, sizeof(address), "%s",
             w->listener->ops->address(w->listener));
    assert_true(w->listener->ops->accept(w->listener, event_opened, &accepted));
    w->listener->ops->close(w->listener);
    event_await(&accepted);
    assert_null(accepted.stream);
    assert_null(dial_once(address));
    assert_false(
        w->listener->ops->accept(w->listener, event_opened, &accepted));
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
    assert_true(w->listener->ops->accept(w->listener, event_opened, &accepted));
    stream = dial_once(address);
    event_await(&accepted);
    assert_non_null(stream);
    assert_non_null(strstr(stream->ops->peer(stream), "tcp://127.0.0.1:"));
    end_of(stream);
    end_of(accepted.stream);
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

        assert_true(dialer->ops->dial(dialer, event_opened, &dialed));
        dialer->ops->close(dialer);
        event_await(&dialed);
        assert_null(dialed.stream);
        assert_false(dialer->ops->dial(dialer, event_opened, &dialed));
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

    if (SANITIZED_THREADS)
        skip(); /* it gives up when a child makes threads */
    assert_null(dial_once("tcp://127.0.0.1:1"));
    child = fork();
    if (child == 0) {
        static struct io_listener *listener; /* for valgrind: not lost */
        struct io_stream *stream;

        listener = listen_at("tcp://127.0.0.1:0");
        stream = dial_once(listener->ops->address(listener));
        /* Its thread has things under way, which are no leaks. */
        if (stream)
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    io_set_up(state);
    io_tear_down(state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
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
