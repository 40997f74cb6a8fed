/* A long life, shortened: very many calls over connections that come and go, in
 * one process with both ends.
 *
 *    soak_bench [CALLS]     5,000,000
 *
 * Each connection carries CALLS_EACH calls, 16 at once, with deadline, key and
 * metadata; one call in a hundred is given up as soon as it is started. After
 * each tenth part all is quiet, and what the process holds is looked at: memory
 * (malloc gives back first what it keeps for itself), files, threads. The first
 * part warms up. Exits with 1 when a call did not end as it should, or files or
 * threads were left. */
#include <idem/call.h>
#include <idem/standard.h>

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "echo.idem.h"

#include "measure.h"
#include "process.h"
#include "sanitizer.h"

#define CALLS INT64_C(5000000)
#define CALLS_MIN 100000
#define CALLS_EACH 500 /* of a connection */
#define PARTS 10
#define THREADS 4
#define IN_FLIGHT 16
#define GIVEN_UP 100 /* one call of so many */
#define BODY 64
#define KIB_MAX 1024

struct soak {
    struct idem_server *server;
    const char *address;
    atomic_int_fast64_t left; /* calls of this part that no connection has */
    atomic_ullong ended, given_up;
};

/* One connection and its calls. */
struct lane {
    struct soak *soak;
    struct idem_channel *channel;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t done;
    unsigned left, alive;
    struct idem_error wrong; /* the first call that ended as none should */
};

static void
die(const char *what)
{
    fprintf(stderr, "soak_bench: %s\n", what);
    exit(1);
}

/* --- Calls --- */

static void start(struct lane *lane);

/* May there be one more? */
static bool
take_turn(struct lane *lane)
{
    bool more;

    pthread_mutex_lock(&lane->lock);
    more = lane->left > 0;
    if (more) {
        lane->left--;
        lane->alive++;
    }
    pthread_mutex_unlock(&lane->lock);
    return more;
}

static void
leave(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    if (--lane->alive == 0)
        pthread_cond_signal(&lane->done);
    pthread_mutex_unlock(&lane->lock);
}

static void
ended(struct idem_call *call, const echo_echo_reply *reply,
      const struct idem_outcome *outcome)
{
    struct lane *lane = idem_call_user(call);

    atomic_fetch_add(&lane->soak->ended, 1);
    if (outcome->status == IDEM_CANCELLED)
        atomic_fetch_add(&lane->soak->given_up, 1);
    else if (outcome->status != IDEM_OK || reply->body.len != BODY)
        idem_fail(&lane->wrong, IDEM_INTERNAL, "a call ended with %s: %s",
                  idem_status_name(outcome->status), outcome->message);
    if (take_turn(lane))
        start(lane);
    leave(lane);
}

static void
start(struct lane *lane)
{
    static _Thread_local unsigned n;
    static uint8_t body[BODY];
    static const struct idem_call_metadata where = {
        "x-soak", {(const uint8_t *)"a value of its own", 18}};
    const struct idem_call_options options = {
        .timeout_ms = 60000,
        .metadata = &where,
        .n_metadata = 1,
        .user = lane,
    };
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct idem_call *call;

    request.body.data = body;
    request.body.len = sizeof body;
    call = n % 2 ? echo_echo_async(lane->channel, &request, &options, ended)
                 : echo_echo_inline_async(lane->channel, &request, &options,
                                          ended);
    if (++n % GIVEN_UP == 0)
        idem_call_cancel(call);
    idem_call_release(call);
}

/* --- Connections --- */

static void
run_lane(struct soak *soak, unsigned calls)
{
    struct lane lane = {.soak = soak, .left = calls};
    struct idem_error err;

    pthread_mutex_init(&lane.lock, NULL);
    pthread_cond_init(&lane.done, NULL);
    if (idem_client_open(&lane.channel, soak->address, NULL, &err) != IDEM_OK)
        die(err.message);
    for (unsigned i = 0; i < IN_FLIGHT && take_turn(&lane); i++)
        start(&lane);
    pthread_mutex_lock(&lane.lock);
    while (lane.alive > 0)
        pthread_cond_wait(&lane.done, &lane.lock);
    pthread_mutex_unlock(&lane.lock);
    idem_channel_close(lane.channel);
    pthread_cond_destroy(&lane.done);
    pthread_mutex_destroy(&lane.lock);
    if (lane.wrong.status != IDEM_OK)
        die(lane.wrong.message);
}

static void *
run_lanes(void *with)
{
    struct soak *soak = with;

    while (atomic_fetch_sub(&soak->left, CALLS_EACH) >= CALLS_EACH)
        run_lane(soak, CALLS_EACH);
    return NULL;
}

static void
run_part(struct soak *soak, int64_t calls)
{
    pthread_t threads[THREADS];

    atomic_store(&soak->left, calls);
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run_lanes, soak) != 0)
            die("no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* --- What is held --- */

struct held {
    long kib;
    unsigned files, threads;
};

static unsigned
entries_of(const char *path)
{
    DIR *folder = opendir(path);
    unsigned n = 0;

    if (!folder)
        die(path);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static struct held
look(void)
{
    malloc_trim(0);
    return (struct held){
        .kib = process_resident_kib(getpid()),
        .files = entries_of("/proc/self/fd"),
        .threads = entries_of("/proc/self/task"),
    };
}

/* What a connection that was closed has left ends on other threads: wait until
 * files and threads are as few as they were, but not for ever. */
static struct held
look_when_quiet(const struct held *first)
{
    struct held held = look();

    for (unsigned i = 0; i < 100; i++) {
        if (held.files <= first->files && held.threads <= first->threads)
            break;
        pass_seconds(0.05);
        held = look();
    }
    return held;
}

static struct idem_server *
serve(const struct echo_handlers *handlers)
{
    struct idem_server *server = NULL;
    struct idem_error err;

    if (idem_server_open(&server, NULL, NULL, NULL, &err) != IDEM_OK ||
        echo_register(server, handlers, NULL, &err) != IDEM_OK ||
        idem_server_listen(server, "tcp://127.0.0.1:0", &err) != IDEM_OK ||
        idem_server_start(server, &err) != IDEM_OK)
        die(err.message);
    return server;
}

static enum idem_status
echo(struct idem_context *context, const echo_echo_request *request,
     echo_echo_reply *reply)
{
    (void)context;
    reply->body = request->body;
    return IDEM_OK;
}

/* The most that it grew beyond what it held after the first part. */
static struct held
soak_all(struct soak *soak, int64_t calls)
{
    struct held first = {0}, most = {0};

    for (unsigned part = 0; part < PARTS; part++) {
        struct held held;

        run_part(soak, calls / PARTS);
        held = part == 0 ? look() : look_when_quiet(&first);
        fprintf(stderr, "part %u: %ld KiB, %u files, %u threads\n", part + 1,
                held.kib, held.files, held.threads);
        if (part == 0)
            first = held;
        if (held.kib - first.kib > most.kib)
            most.kib = held.kib - first.kib;
        if (held.files > first.files)
            most.files = held.files - first.files;
        if (held.threads > first.threads)
            most.threads = held.threads - first.threads;
    }
    report("soak.rss.held", (double)first.kib, "KiB");
    return most;
}

static int64_t
read_calls(int argc, char **argv)
{
    char *end;
    int64_t calls = CALLS;

    if (argc == 2) {
        errno = 0;
        calls = strtoll(argv[1], &end, 10);
        if (errno || *end || calls < CALLS_MIN)
            argc = 3;
    }
    if (argc <= 2)
        return calls;
    fprintf(stderr, "usage: soak_bench [CALLS], %d at least\n", CALLS_MIN);
    exit(2);
}

int
main(int argc, char **argv)
{
    static const struct echo_handlers handlers = {.echo = echo,
                                                  .echo_inline = echo};
    int64_t calls = read_calls(argc, argv), from_ns = now_ns();
    struct soak soak = {.server = serve(&handlers)};
    struct held grown;
    double seconds;

    soak.address = idem_server_address(soak.server, 0);
    grown = soak_all(&soak, calls);
    seconds = (double)(now_ns() - from_ns) / 1e9;
    report("soak.calls", (double)atomic_load(&soak.ended), "calls");
    report("soak.given_up", (double)atomic_load(&soak.given_up), "calls");
    report("soak.connections", (double)calls / CALLS_EACH, "connections");
    report("soak.rate", (double)calls / seconds, "calls/s");
    if (!SANITIZED)
        report_limit("soak.rss.kib", (double)grown.kib, KIB_MAX);
    report_limit("soak.files", grown.files, 0);
    report_limit("soak.threads", grown.threads, 0);
    idem_server_free(soak.server);
    return grown.files > 0 || grown.threads > 0;
}
