#include "support.h"

#include "io_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <idem/clock.h>
#include <idem/threads.h>

/* 1,000 connections that have sent something and wait: their thread sleeps. */

#define STREAMS 1000
#define LOOKS 200 /* in a row at which nobody runs */
#define PATIENCE_NS 10000000000

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned sent, ended;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

struct end {
    struct io_stream *stream;
    int peer;
    uint8_t byte;
};

static struct end ends[STREAMS];

static void
count(unsigned *counter)
{
    pthread_mutex_lock(&seen.lock);
    ++*counter;
    pthread_cond_signal(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
}

static void
await(const unsigned *counter)
{
    pthread_mutex_lock(&seen.lock);
    while (*counter < STREAMS)
        pthread_cond_wait(&seen.changed, &seen.lock);
    pthread_mutex_unlock(&seen.lock);
}

static void
sent(void *with, enum idem_status result, size_t size)
{
    (void)with;
    assert_int_equal(result, IDEM_OK);
    assert_int_equal(size, 1);
    count(&seen.sent);
}

static void
received(void *with, enum idem_status result, size_t size)
{
    struct end *end = with;

    (void)result;
    assert_int_equal(size, 0);
    end->stream->ops->free(end->stream);
    count(&seen.ended);
}

static void
allow_files(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void
connect_all(void)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        struct end *end = &ends[i];
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
        end->peer = fds[0];
        end->stream = socket_stream_new(fds[1]);
        assert_non_null(end->stream);
        assert_true(
            end->stream->ops->recv(end->stream, &end->byte, 1, received, end));
    }
}

static void
send_on_all(void)
{
    static const uint8_t byte = 'a';
    const struct idem_bytes part = {&byte, 1};

    seen.sent = 0;
    for (unsigned i = 0; i < STREAMS; i++)
        assert_true(
            ends[i].stream->ops->send(ends[i].stream, &part, 1, sent, NULL));
    await(&seen.sent);
}

/* Of proc(5): the state stands behind the name's bracket. */
static bool
runs(const char *task)
{
    char path[300], line[512] = "";
    const char *state;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%s/stat", task);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (!fgets(line, sizeof line, file))
        line[0] = 0;
    fclose(file);
    state = strrchr(line, ')');
    return state && state[2] == 'R';
}

/* Another thread than this one. */
static bool
any_runs(void)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    bool any = false;

    assert_non_null(folder);
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != getpid())
            any |= runs(entry->d_name);
    closedir(folder);
    return any;
}

static void
await_sleep(void)
{
    const struct idem_clock *clock = idem_clock_system();
    int64_t until_ns = clock->monotonic_ns(clock) + PATIENCE_NS;

    for (unsigned asleep = 0; asleep < LOOKS;) {
        assert_true(clock->monotonic_ns(clock) < until_ns);
        asleep = any_runs() ? 0 : asleep + 1;
    }
}

static void
connections_that_wait_cost_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        send_on_all();
        await_sleep();
    }
}

static void
nor_with_the_longest_spin_or_none(void **state)
{
    (void)state;
    idem_threads_set_spin_us(UINT32_MAX);
    send_on_all();
    await_sleep();
    idem_threads_set_spin_us(0);
    send_on_all();
    await_sleep();
    idem_threads_set_spin_us(IDEM_SPIN_US);
}

static int
setup(void **state)
{
    (void)state;
    allow_files();
    connect_all();
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STREAMS; i++)
        close(ends[i].peer);
    await(&seen.ended);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_that_wait_cost_nothing),
        cmocka_unit_test(nor_with_the_longest_spin_or_none),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
