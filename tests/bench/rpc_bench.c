/* Unary echo: ours against gRPC, nng REQ/REP and plain epoll. Streams: ours
 * against gRPC's callback reactors; a call is a message that came.
 *
 *    rpc_bench [--quick]
 *
 * Every candidate is two processes, its server and its client (side.h), that do
 * the same work. Rounds are interleaved, the first candidate of a round
 * rotates, a goal is the median of the ratios within each round. Where there
 * are several settings of gRPC, each round's fastest one counts. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "candidate.h"
#include "side.h"
#include "tempdir.h"

#define ROUNDS_MAX 5
#define BIT(number) (1U << (number))
#define GRPC_ASYNC (BIT(GRPC_QUEUE) | BIT(GRPC_QUEUES) | BIT(GRPC_CALLBACK))
#define OURS (BIT(IDEM_POOL) | BIT(IDEM_INLINE))
#define TALKS (BIT(IDEM_TALK) | BIT(GRPC_TALK))
#define WATCHES (BIT(IDEM_WATCH) | BIT(GRPC_WATCH))
#define ALL (OURS | BIT(PLAIN) | BIT(REQREP) | GRPC_ASYNC)

struct scene {
    const char *name, *transport;
    unsigned connections, in_flight, bytes;
    unsigned who;   /* bits of candidates */
    bool long_only; /* left out of a quick run */
};

enum {
    ONE,
    SIXTY_FOUR,
    CONNECTIONS_64,
    THREADS_16,
    TLS_64,
    TALKS_64,
    WATCHES_16,
};

static const struct scene scenes[] = {
    [ONE] = {"tcp.1x1.64B", "tcp", 1, 1, 64, ALL, false},
    [SIXTY_FOUR] = {"tcp.1x64.64B", "tcp", 1, 64, 64, ALL, false},
    [CONNECTIONS_64] = {"tcp.64x64.64B", "tcp", 64, 64, 64, ALL, false},
    [THREADS_16] = {"tcp.threads16.64B", "tcp", 1, 16, 64,
                    BIT(IDEM_BLOCKING) | BIT(GRPC_SYNC), false},
    [TLS_64] = {"tls.1x64.64B", "tls+tcp", 1, 64, 64,
                BIT(IDEM_POOL) | GRPC_ASYNC, false},
    [TALKS_64] = {"tcp.talk64.1KiB", "tcp", 1, 64, 1024, TALKS, false},
    [WATCHES_16] = {"tcp.watch16.1KiB", "tcp", 1, 16, 1024, WATCHES, false},
    {"tcp.watch1.1KiB", "tcp", 1, 1, 1024, WATCHES, true},
    {"tcp.watch1.64B", "tcp", 1, 1, 64, WATCHES, true},
    {"tcp.talk1.64B", "tcp", 1, 1, 64, TALKS, true},
    {"tcp.1x16.64B", "tcp", 1, 16, 64, ALL, true},
    {"tcp.1x256.64B", "tcp", 1, 256, 64, ALL, true},
    {"tcp.4x64.64B", "tcp", 4, 64, 64, ALL, true},
    {"tcp.1x64.1KiB", "tcp", 1, 64, 1024, ALL, true},
    {"tcp.1x64.64KiB", "tcp", 1, 64, 65536, ALL, true},
    {"ipc.1x1.64B", "ipc", 1, 1, 64, ALL, true},
    {"ipc.1x64.64B", "ipc", 1, 64, 64, ALL, true},
};

struct plan {
    unsigned rounds;
    double seconds;
    const char *folder;
};

struct result {
    unsigned rounds, who; /* who was there */
    struct measure seen[CANDIDATES][ROUNDS_MAX];
};

static double
p50_of(const struct measure *seen)
{
    return (double)seen->p50_ns / 1e3;
}

static double
p99_of(const struct measure *seen)
{
    return (double)seen->p99_ns / 1e3;
}

typedef double value_fn(const struct measure *seen);

static double
median_of(const struct result *result, unsigned who, value_fn *value)
{
    double values[ROUNDS_MAX];

    for (unsigned i = 0; i < result->rounds; i++)
        values[i] = value(&result->seen[who][i]);
    return median(values, result->rounds);
}

static void
report_scene(const struct scene *scene, const struct result *result)
{
    static const struct {
        const char *suffix, *unit;
        value_fn *value;
    } columns[] = {
        {"", "calls/s", rate_of},
        {".p50", "us", p50_of},
        {".p99", "us", p99_of},
        {".cpu", "us/call", cpu_per_call},
    };
    char name[96];

    for (unsigned who = 0; who < CANDIDATES; who++)
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            if (!(result->who & BIT(who)))
                continue;
            snprintf(name, sizeof name, "rpc.%s.%s%s", scene->name,
                     candidates[who].name, columns[i].suffix);
            report(name, median_of(result, who, columns[i].value),
                   columns[i].unit);
        }
}

static unsigned
built(unsigned who)
{
    for (unsigned i = 0; i < CANDIDATES; i++)
        if (!candidate_is_built(&candidates[i]))
            who &= ~BIT(i);
    return who;
}

static void
run_round(const struct plan *plan, const struct scene *scene,
          struct contestant *contestants, struct result *result, unsigned round)
{
    const struct candidate_load load = {scene->connections, scene->in_flight,
                                        scene->bytes, plan->seconds};

    for (unsigned i = 0; i < CANDIDATES; i++) {
        unsigned who = (i + round) % CANDIDATES;

        if (result->who & BIT(who))
            result->seen[who][round] = contestant_run(&contestants[who], &load);
    }
}

static void
run_scene(const struct plan *plan, const struct scene *scene,
          struct result *result)
{
    struct contestant contestants[CANDIDATES];

    result->who = built(scene->who);
    result->rounds = plan->rounds;
    for (unsigned i = 0; i < CANDIDATES; i++)
        if (result->who & BIT(i))
            contestants[i] =
                candidate_start(&candidates[i], scene->transport, plan->folder);
    for (unsigned round = 0; round < plan->rounds; round++)
        run_round(plan, scene, contestants, result, round);
    for (unsigned i = 0; i < CANDIDATES; i++)
        if (result->who & BIT(i))
            contestant_stop(&contestants[i]);
    report_scene(scene, result);
}

/* The fastest of those in that round. */
static const struct measure *
best(const struct result *result, unsigned of, unsigned round)
{
    const struct measure *fastest = NULL;

    for (unsigned i = 0; i < CANDIDATES; i++)
        if ((of & result->who & BIT(i)) &&
            (!fastest || rate_of(&result->seen[i][round]) > rate_of(fastest)))
            fastest = &result->seen[i][round];
    return fastest;
}

/* The median over the rounds of value(ours) / value(best of the peers). NAN
 * when one of them is not there. */
static double
ratio(const struct result *result, unsigned ours, unsigned peers,
      value_fn *value)
{
    double ratios[ROUNDS_MAX];

    if (!(result->who & BIT(ours)) || !(result->who & peers))
        return median(NULL, 0);
    for (unsigned i = 0; i < result->rounds; i++)
        ratios[i] =
            value(&result->seen[ours][i]) / value(best(result, peers, i));
    return median(ratios, result->rounds);
}

static void
report_peers_of_grpc(const struct result *results)
{
    const struct result *one = &results[ONE], *many = &results[SIXTY_FOUR];

    report_goal("rpc.grpc.64", ratio(many, IDEM_POOL, GRPC_ASYNC, rate_of), 20);
    report_goal("rpc.grpc.cpu",
                1 / ratio(many, IDEM_POOL, GRPC_ASYNC, cpu_per_call), 25);
    report_goal("rpc.grpc.conns64",
                ratio(&results[CONNECTIONS_64], IDEM_POOL, GRPC_ASYNC, rate_of),
                4);
    report_goal(
        "rpc.grpc.sync16",
        ratio(&results[THREADS_16], IDEM_BLOCKING, BIT(GRPC_SYNC), rate_of), 8);
    report_goal("rpc.stream.64",
                ratio(&results[TALKS_64], IDEM_TALK, BIT(GRPC_TALK), rate_of),
                12);
    report("rpc.watch.16",
           ratio(&results[WATCHES_16], IDEM_WATCH, BIT(GRPC_WATCH), rate_of),
           "x, messages of 16 server streams, 1 KiB");
    report_goal("rpc.grpc.tls64",
                ratio(&results[TLS_64], IDEM_POOL, GRPC_ASYNC, rate_of), 12);
    report_limit("rpc.latency.pool", ratio(one, IDEM_POOL, GRPC_ASYNC, p50_of),
                 0.5);
    report_limit("rpc.latency.inline",
                 ratio(one, IDEM_INLINE, GRPC_ASYNC, p50_of), 0.36);
    report("rpc.grpc.1", ratio(one, IDEM_POOL, GRPC_ASYNC, rate_of),
           "x, one call in flight: nothing to gather");
    report("rpc.grpc.1.inline", ratio(one, IDEM_INLINE, GRPC_ASYNC, rate_of),
           "x, the same, handler inline");
    report("rpc.grpc.64.inline", ratio(many, IDEM_INLINE, GRPC_ASYNC, rate_of),
           "x, 64 in flight, handler inline");
}

static void
report_goals(const struct result *results)
{
    if (results[SIXTY_FOUR].who & GRPC_ASYNC)
        report_peers_of_grpc(results);
    else
        fprintf(stderr, "rpc_bench: built without gRPC, its goals are left "
                        "out (IDEM_BENCH_GRPC)\n");
    report_goal("rpc.epoll.64",
                ratio(&results[SIXTY_FOUR], IDEM_POOL, BIT(PLAIN), rate_of),
                0.6);
    report("rpc.epoll.1", ratio(&results[ONE], IDEM_POOL, BIT(PLAIN), rate_of),
           "x, one call in flight");
}

static void
report_idle(const struct plan *plan)
{
    struct contestant contestant =
        candidate_start(&candidates[IDEM_POOL], "tcp", plan->folder);

    report_limit("rpc.idle.kib", contestant_idle_kib(&contestant), 16);
    contestant_stop(&contestant);
}

/* For both sides of all: P-256, TLS 1.3 between them. */
static void
make_certificate(const char *folder)
{
    char command[512];

    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
             "-nodes -days 2 -subj /CN=bench -addext subjectAltName=IP:"
             "127.0.0.1 -keyout %s/" SIDE_KEY " -out %s/" SIDE_CERTIFICATE
             " 2>/dev/null",
             folder, folder);
    if (system(command) != 0)
        side_die("openssl", "made no certificate");
}

int
main(int argc, char **argv)
{
    static struct result results[sizeof scenes / sizeof *scenes];
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    struct plan plan = {.rounds = quick ? 3 : ROUNDS_MAX,
                        .seconds = quick ? 0.25 : 0.4};
    struct tempdir folder;

    tempdir_open(&folder);
    plan.folder = folder.path;
    setenv("BENCH_FOLDER", folder.path, 1);
    make_certificate(folder.path);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (!quick || !scenes[i].long_only)
            run_scene(&plan, &scenes[i], &results[i]);
    report_goals(results);
    report_idle(&plan);
    tempdir_close(&folder);
    return 0;
}
