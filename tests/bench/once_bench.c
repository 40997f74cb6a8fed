/* What exactly once costs, against the same done by hand, in one run.
 *
 * Ours is the whole road (client, wire, server, handler, record) in this
 * process; the peer is a service's inside alone. Rounds alternate; ratios are
 * medians of the pairs. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idem/postgres.h>

#include "byhand.h"
#include "loop.h"
#include "postgres.h"
#include "redis.h"
#include "service.h"

#define ROUNDS 5
#define SECONDS 1.0
#define POOL 16
#define BODY 64
#define ANSWER 256

struct stage {
    struct postgres *postgres;
    struct redis *redis;
    struct idem_server *server;
    struct idem_channel *channel;
};

struct shape {
    const char *name;
    loop_start_fn *start;
    enum byhand_shape peer;
};

static const uint8_t body[BODY];

static void
lease_done(struct idem_call *call, const bench_reply *reply,
           const struct idem_outcome *outcome)
{
    (void)reply;
    loop_done(idem_call_user(call), outcome);
}

static struct idem_call *
start_lease(struct idem_channel *channel,
            const struct idem_call_options *options, struct loop *loop)
{
    bench_request request = BENCH_REQUEST_INIT;
    uint8_t bytes[BODY];

    (void)loop;
    memcpy(bytes, body, sizeof bytes);
    request.body.data = bytes;
    request.body.len = sizeof bytes;
    request.reply_bytes = ANSWER;
    return bench_lease_async(channel, &request, options, lease_done);
}

static struct idem_call *
start_transact(struct idem_channel *channel,
               const struct idem_call_options *options, struct loop *loop)
{
    bench_request request = BENCH_REQUEST_INIT;
    uint8_t bytes[BODY];

    (void)loop;
    memcpy(bytes, body, sizeof bytes);
    request.body.data = bytes;
    request.body.len = sizeof bytes;
    request.reply_bytes = ANSWER;
    return bench_transact_async(channel, &request, options, lease_done);
}

static const struct shape shapes[] = {
    {"leased", start_lease, BYHAND_LEASED},
    {"transaction", start_transact, BYHAND_TRANSACTION},
};

static void
set_up(struct stage *stage)
{
    static const struct postgres_options durable = {
        .durable = true,
        .settings = "shared_buffers = 512MB\n"
                    "wal_init_zero = off\n"
                    "max_wal_size = 4GB\n",
    };
    struct idem_postgres_options options = {0};
    struct idem_store *store;
    struct idem_error err;

    stage->postgres = postgres_start(&durable);
    stage->redis = redis_start(NULL);
    options.conninfo = postgres_conninfo(stage->postgres);
    byhand_prepare(options.conninfo);
    postgres_sql(stage->postgres, BENCH_SCHEMA);
    if (idem_postgres_migrate(options.conninfo, NULL, &err) != IDEM_OK ||
        idem_postgres_open(&store, &options, &err) != IDEM_OK) {
        fprintf(stderr, "bench: %s\n", err.message);
        exit(1);
    }
    stage->server = bench_serve(store, NULL, "tcp://127.0.0.1:0");
    stage->channel = bench_open(stage->server);
}

static void
tear_down(struct stage *stage)
{
    idem_channel_close(stage->channel);
    idem_server_free(stage->server);
    redis_free(stage->redis);
    postgres_free(stage->postgres);
}

static double
rate(const struct measure *seen)
{
    return (double)seen->calls / seen->seconds;
}

static struct measure
run_ours(const struct stage *stage, const struct shape *shape, unsigned n)
{
    const struct loop_options options = {
        .channels = &stage->channel,
        .n_channels = 1,
        .in_flight = n,
        .seconds = SECONDS,
        .start = shape->start,
    };

    return loop_run(&options);
}

static struct measure
run_peer(const struct stage *stage, const struct shape *shape, unsigned n)
{
    const struct byhand_options options = {
        .shape = shape->peer,
        .conninfo = postgres_conninfo(stage->postgres),
        .redis_socket = redis_unix_url(stage->redis) + strlen("unix://"),
        .in_flight = n,
        .pool = POOL,
        .seconds = SECONDS,
    };

    return byhand_run(&options);
}

static void
compare(const struct stage *stage, const struct shape *shape, unsigned n)
{
    double ours[ROUNDS], peer[ROUNDS], ratio[ROUNDS], p50[ROUNDS], p99[ROUNDS];
    char name[64];

    (void)run_ours(stage, shape, n); /* warm */
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct measure a = run_ours(stage, shape, n);
        struct measure b = run_peer(stage, shape, n);

        ours[i] = rate(&a);
        peer[i] = rate(&b);
        ratio[i] = ours[i] / peer[i];
        p50[i] = (double)a.p50_ns / 1e6;
        p99[i] = (double)a.p99_ns / 1e6;
    }
    snprintf(name, sizeof name, "once.%s.%u", shape->name, n);
    report(name, median(ours, ROUNDS), "calls/s");
    snprintf(name, sizeof name, "once.%s.%u.p50", shape->name, n);
    report(name, median(p50, ROUNDS), "ms");
    snprintf(name, sizeof name, "once.%s.%u.p99", shape->name, n);
    report(name, median(p99, ROUNDS), "ms");
    snprintf(name, sizeof name, "byhand.%s.%u", shape->name, n);
    report(name, median(peer, ROUNDS), "calls/s");
    snprintf(name, sizeof name, "ratio.%s.%u", shape->name, n);
    report(name, median(ratio, ROUNDS), "x");
}

int
main(void)
{
    static const unsigned in_flight[] = {1, 16, 64, 256};
    struct stage stage;

    set_up(&stage);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t i = 0; i < sizeof in_flight / sizeof *in_flight; i++)
            compare(&stage, &shapes[s], in_flight[i]);
    tear_down(&stage);
    return 0;
}
