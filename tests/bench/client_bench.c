/* What the client promises that is a number, in one run.
 *
 *    client_bench [--quick]
 *
 * hedge.p99: the slowest of a hundred calls that write, to two servers, one of
 * which answers nothing any more, over the same while both do. Every call must
 * have taken effect exactly once. client.inflight.kib: memory a call, of very
 * many in flight on one channel. */
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idem/policy.h>
#include <idem/postgres.h>

#include "crowd.h"
#include "measure.h"
#include "postgres.h"
#include "service.h"
#include "tcp_proxy.h"

#define CALLERS 4
#define ROUNDS_MAX 5
#define CROWD 100000
#define DELAY_MIN_MS 2

struct field {
    struct postgres *postgres;
    struct idem_server *servers[2];
    struct tcp_proxy *proxy; /* in front of the first */
    struct idem_channel *channel;
    unsigned calls; /* of a caller in a round */
};

struct caller {
    pthread_t thread;
    const struct field *field;
    struct histogram seen;
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status == IDEM_OK)
        return;
    fprintf(stderr, "bench: %s\n", err->message);
    exit(1);
}

/* --- Two servers of one authority --- */

static struct idem_server *
serve(const struct postgres *postgres)
{
    const struct idem_postgres_options options = {
        .conninfo = postgres_conninfo(postgres)};
    struct idem_store *store = NULL;
    struct idem_error err;

    must(idem_postgres_open(&store, &options, &err), &err);
    return bench_serve(store, NULL, NULL, "tcp://127.0.0.1:0");
}

static unsigned
port_of(const struct idem_server *server)
{
    return (unsigned)atoi(strrchr(idem_server_address(server, 0), ':') + 1);
}

static struct idem_channel *
open_channel(const struct field *field, int64_t delay_ms)
{
    char config[256], target[128];
    const struct idem_policy_options policy = {.config_json = config,
                                               .ignore_environment = true};
    const struct idem_channel_options options = {
        .policy = &policy, .balancer = IDEM_BALANCER_ROUND_ROBIN};
    struct idem_channel *channel = NULL;
    struct idem_error err;

    snprintf(config, sizeof config,
             "{\"methodConfig\": [{\"name\": [{}], \"hedgingPolicy\": {"
             "\"maxAttempts\": 2, \"hedgingDelay\": \"%d.%03ds\","
             " \"nonFatalStatusCodes\": [\"UNAVAILABLE\"]}}]}",
             (int)(delay_ms / 1000), (int)(delay_ms % 1000));
    snprintf(target, sizeof target, "list://tcp://127.0.0.1:%u,%s",
             tcp_proxy_port(field->proxy),
             idem_server_address(field->servers[1], 0));
    must(idem_client_open(&channel, target, &options, &err), &err);
    must(idem_channel_wait_ready(channel, 10000, &err), &err);
    return channel;
}

static void
open_field(struct field *field)
{
    struct idem_error err;

    field->postgres = postgres_start(NULL);
    must(idem_postgres_migrate(postgres_conninfo(field->postgres), NULL, &err),
         &err);
    postgres_sql(field->postgres, BENCH_SCHEMA);
    field->servers[0] = serve(field->postgres);
    field->servers[1] = serve(field->postgres);
    field->proxy = tcp_proxy_start(port_of(field->servers[0]));
}

static void
close_field(struct field *field)
{
    idem_channel_close(field->channel);
    tcp_proxy_free(field->proxy);
    idem_server_free(field->servers[0]);
    idem_server_free(field->servers[1]);
    postgres_free(field->postgres);
}

/* --- Calls --- */

static void *
call_on(void *with)
{
    struct caller *caller = with;
    const struct idem_call_options options = {.timeout_ms = 60000};
    bench_request request = BENCH_REQUEST_INIT;

    for (unsigned i = 0; i < caller->field->calls; i++) {
        int64_t since_ns = now_ns();
        struct idem_outcome outcome;

        if (bench_transact(caller->field->channel, &request, NULL, &options,
                           &outcome) != IDEM_OK) {
            fprintf(stderr, "bench: %s\n", outcome.message);
            exit(1);
        }
        histogram_add(&caller->seen, (uint64_t)(now_ns() - since_ns));
    }
    return NULL;
}

/* In milliseconds. */
static double
p99_of(const struct field *field)
{
    static struct caller callers[CALLERS];
    struct histogram all = {0};

    memset(callers, 0, sizeof callers);
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i].field = field;
        pthread_create(&callers[i].thread, NULL, call_on, &callers[i]);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        histogram_merge(&all, &callers[i].seen);
    }
    return (double)histogram_quantile(&all, 0.99) / 1e6;
}

static void
check_effects(const struct field *field, unsigned rounds)
{
    int64_t wanted = (int64_t)rounds * CALLERS * field->calls;
    int64_t rows =
        postgres_sql(field->postgres, "SELECT count(*) FROM bench_business");
    int64_t keys = postgres_sql(
        field->postgres, "SELECT count(DISTINCT key) FROM bench_business");

    report("hedge.calls", (double)wanted, "calls");
    report("hedge.effects", (double)rows, "effects");
    if (rows == wanted && keys == wanted)
        return;
    fprintf(stderr, "bench: %d calls have %d effects under %d keys\n",
            (int)wanted, (int)rows, (int)keys);
    exit(1);
}

/* The delay is what a caller would set it to: what a slow call takes. */
static void
measure_hedge(unsigned rounds, unsigned calls)
{
    struct field field = {.calls = calls};
    double with[ROUNDS_MAX], without[ROUNDS_MAX], ratio[ROUNDS_MAX];
    double slow_ms;

    open_field(&field);
    field.channel = open_channel(&field, 1000);
    slow_ms = p99_of(&field);
    idem_channel_close(field.channel);
    field.channel = open_channel(
        &field, slow_ms < DELAY_MIN_MS ? DELAY_MIN_MS : (int64_t)slow_ms);
    for (unsigned i = 0; i < rounds; i++) {
        without[i] = p99_of(&field);
        tcp_proxy_hold(field.proxy, 1);
        with[i] = p99_of(&field);
        tcp_proxy_hold(field.proxy, 0);
        ratio[i] = with[i] / without[i];
    }
    report("hedge.p99.both", median(without, rounds), "ms");
    report("hedge.p99.stalled", median(with, rounds), "ms");
    check_effects(&field, 1 + 2 * rounds);
    report_limit("hedge.p99", median(ratio, rounds), 3);
    close_field(&field);
}

static void
measure_crowd(void)
{
    struct crowd_seen seen = crowd_run(CROWD);

    report("client.inflight.calls", seen.once, "calls");
    if (seen.once != CROWD || seen.ok != CROWD) {
        fprintf(stderr, "bench: of %d calls %u were told once\n", CROWD,
                seen.once);
        exit(1);
    }
    report_limit("client.inflight.kib", seen.kib, 2);
}

int
main(int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;

    measure_crowd();
    measure_hedge(quick ? 3 : ROUNDS_MAX, quick ? 200 : 500);
    return 0;
}
