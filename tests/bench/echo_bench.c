#include "echo.idem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Where we stand: unary echo of 64 bytes, server and client in this process.
 *
 *    echo_bench [address] [seconds]
 *
 * Calls a second with 64 in flight on one connection, and the time of one call
 * alone, for a handler on the I/O thread and for one on a worker. */

#define BODY 64
#define MANY 64
#define SAMPLES 1000000

struct run {
    struct idem_channel *channel;
    bool inline_method;
    int64_t end_ns;
    atomic_uint alive;
    atomic_ulong answered, failed;
    int64_t *took_ns; /* one in flight only */
    unsigned n_took;
    pthread_mutex_t lock;
    pthread_cond_t over;
};

struct lane {
    struct run *run;
    int64_t began_ns;
};

static int64_t
now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double
cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static enum idem_status
echo(struct idem_context *context, const echo_echo_request *request,
     echo_echo_reply *reply)
{
    (void)context;
    reply->body = request->body;
    reply->number = request->number;
    return IDEM_OK;
}

static void next_call(struct lane *lane);

static void
end_lane(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    if (atomic_fetch_sub(&run->alive, 1) == 1)
        pthread_cond_signal(&run->over);
    pthread_mutex_unlock(&run->lock);
}

static void
done(struct idem_call *call, const echo_echo_reply *reply,
     const struct idem_outcome *outcome)
{
    struct lane *lane = idem_call_user(call);
    struct run *run = lane->run;
    int64_t now = now_ns();

    if (outcome->status != IDEM_OK || reply->body.len != BODY)
        atomic_fetch_add(&run->failed, 1);
    atomic_fetch_add_explicit(&run->answered, 1, memory_order_relaxed);
    if (run->took_ns && run->n_took < SAMPLES)
        run->took_ns[run->n_took++] = now - lane->began_ns;
    if (now < run->end_ns)
        next_call(lane);
    else
        end_lane(run);
}

static void
next_call(struct lane *lane)
{
    static uint8_t body[BODY];
    struct idem_call_options options = {.user = lane};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    request.body.data = body;
    request.body.len = BODY;
    request.number = 1;
    lane->began_ns = now_ns();
    idem_call_release(
        lane->run->inline_method
            ? echo_echo_inline_async(lane->run->channel, &request, &options,
                                     done)
            : echo_echo_async(lane->run->channel, &request, &options, done));
}

static int
by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void
measure(struct idem_channel *channel, bool inline_method, unsigned in_flight,
        double seconds)
{
    struct run run = {.channel = channel, .inline_method = inline_method};
    struct lane lanes[MANY];
    double cpu = cpu_s();
    int64_t began = now_ns();
    double took;

    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.over, NULL);
    if (in_flight == 1)
        run.took_ns = calloc(SAMPLES, sizeof *run.took_ns);
    run.end_ns = began + (int64_t)(seconds * 1e9);
    atomic_store(&run.alive, in_flight);
    for (unsigned i = 0; i < in_flight; i++) {
        lanes[i].run = &run;
        next_call(&lanes[i]);
    }
    pthread_mutex_lock(&run.lock);
    while (atomic_load(&run.alive) > 0)
        pthread_cond_wait(&run.over, &run.lock);
    pthread_mutex_unlock(&run.lock);
    took = (double)(now_ns() - began) / 1e9;
    cpu = cpu_s() - cpu;
    printf("%-6s %3u in flight: %8.0f calls/s, %5.2f CPU-s per 1M",
           inline_method ? "inline" : "pool", in_flight,
           (double)run.answered / took, cpu / (double)run.answered * 1e6);
    if (run.n_took > 0) {
        qsort(run.took_ns, run.n_took, sizeof *run.took_ns, by_value);
        printf(", p50 %.0f us, p99 %.0f us",
               (double)run.took_ns[run.n_took / 2] / 1e3,
               (double)run.took_ns[(uint64_t)run.n_took * 99 / 100] / 1e3);
    }
    printf("%s\n", run.failed ? " FAILED" : "");
    free(run.took_ns);
    pthread_cond_destroy(&run.over);
    pthread_mutex_destroy(&run.lock);
}

static int
complain(const struct idem_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

int
main(int argc, char **argv)
{
    const struct echo_handlers handlers = {.echo = echo, .echo_inline = echo};
    const char *address = argc > 1 ? argv[1] : "tcp://127.0.0.1:0";
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    struct idem_server *server = NULL;
    struct idem_channel *channel = NULL;
    struct idem_error err;

    if (idem_server_new(&server, NULL, &err) != IDEM_OK ||
        echo_register(server, &handlers, NULL, &err) != IDEM_OK ||
        idem_server_listen(server, address, &err) != IDEM_OK ||
        idem_server_start(server, &err) != IDEM_OK ||
        idem_channel_new(&channel, idem_server_address(server, 0), NULL,
                         &err) != IDEM_OK)
        return complain(&err);
    for (unsigned i = 0; i < 4; i++)
        measure(channel, i % 2 == 0, i < 2 ? MANY : 1, seconds);
    idem_channel_close(channel);
    idem_server_free(server);
    return 0;
}
