/* What exactly once costs, against the same done by hand, in one run.
 *
 *    once_bench [--quick] [leased|statement|interactive|grouped|writes|
 *                           duplicates|unrelated|replay]
 *
 * Ours is the whole road (client, wire, server, handler, record) in this
 * process; the peer is a service's inside alone. TRANSACTION has two peers: the
 * one of the goals takes five round trips (design.md section 6), the other one
 * three, and its ratio stands below each goal. Rounds alternate; ratios are
 * medians of the pairs. CPU is that of all who took part: this process,
 * PostgreSQL with its backends, Redis.
 *
 * LEASED has servers of its own, and so has TRANSACTION: what is in the tables
 * is of one kind. Upkeep has its turn behind the first calls, as it has each
 * minute. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idem/postgres.h>

#include "byhand.h"
#include "calls.h"
#include "gate.h"
#include "pair.h"
#include "postgres.h"
#include "redis.h"
#include "stage.h"

#define POOL 16
#define BODY 64
#define ANSWER 256
#define WAITING 10000 /* duplicates */
#define SETTLING 20   /* runs at most */

struct plan {
    struct stage stage;
    unsigned rounds;
    double warm, seconds;
    bool quick;
};

struct shape {
    const char *name;
    loop_start_fn *start;
    enum byhand_shape peer;
};

static const struct shape shapes[] = {
    {"leased", call_lease, BYHAND_LEASED},
    {"interactive", call_transact, BYHAND_TRANSACTION},
    {"statement", call_state, BYHAND_TRANSACTION},
    {"grouped", call_group, BYHAND_TRANSACTION},
    {"foretold", call_foretell, BYHAND_TRANSACTION},
};

static struct tally_window
window_of(const struct plan *plan, unsigned n)
{
    return (struct tally_window){
        .running = n,
        .warm = plan->warm,
        .seconds = plan->seconds,
        .others = plan->stage.pids,
        .n_others = 2,
    };
}

static struct measure
run_ours(const struct plan *plan, struct idem_channel *channel,
         loop_start_fn *start, unsigned n)
{
    const struct loop_options options = {&channel, 1, n, start};
    const struct tally_window window = window_of(plan, n);
    struct tally *tally = tally_new();
    struct loop *loop = loop_start(&options, tally);
    struct measure seen = tally_run(tally, &window);

    loop_free(loop);
    tally_free(tally);
    return seen;
}

#define COUNTED                                                                \
    "SELECT sum(n_tup_ins) >= 1000 FROM pg_stat_user_tables "                  \
    "WHERE relname ~ '^idem_record_2'"

/* First calls, until their records are counted, and a turn of upkeep. */
static void
settle(const struct plan *plan, loop_start_fn *start)
{
    const struct postgres *postgres = plan->stage.postgres;
    struct idem_error err;

    for (unsigned i = 0; i < SETTLING && !postgres_sql(postgres, COUNTED); i++)
        (void)run_ours(plan, plan->stage.channel, start, 64);
    if (idem_postgres_maintain(postgres_conninfo(postgres), 0, &err) == IDEM_OK)
        return;
    fprintf(stderr, "bench: upkeep: %s\n", err.message);
    exit(1);
}

static struct measure
run_peer(const struct plan *plan, enum byhand_shape shape, unsigned n)
{
    const struct byhand_options options = {
        .shape = shape,
        .conninfo = postgres_conninfo(plan->stage.postgres),
        .redis_socket = redis_unix_url(plan->stage.redis) + strlen("unix://"),
        .in_flight = n,
        .pool = POOL,
        .window = window_of(plan, n),
    };

    return byhand_run(&options);
}

static void
report_one(const char *prefix, const char *name, const char *suffix,
           double value, const char *unit)
{
    char full[96];

    snprintf(full, sizeof full, "%s.%s%s", prefix, name, suffix);
    report(full, value, unit);
}

/* Ours beside the peer of the goals and, where there is a stronger one, beside
 * that. */
struct comparison {
    struct pair pair, three_trips;
};

static void
run_round(const struct plan *plan, const struct shape *shape, unsigned n,
          struct comparison *seen)
{
    struct measure ours = run_ours(plan, plan->stage.channel, shape->start, n);
    struct measure peer = run_peer(plan, shape->peer, n);

    pair_note(&seen->pair, &ours, &peer);
    if (shape->peer != BYHAND_TRANSACTION)
        return;
    peer = run_peer(plan, BYHAND_THREE_TRIPS, n);
    pair_note(&seen->three_trips, &ours, &peer);
}

static struct comparison
compare(const struct plan *plan, const struct shape *shape, unsigned n)
{
    struct comparison seen = {0};
    char name[64];

    for (unsigned i = 0; i < plan->rounds; i++)
        run_round(plan, shape, n, &seen);
    snprintf(name, sizeof name, "%s.%u", shape->name, n);
    pair_report(&seen.pair, name, "byhand");
    if (seen.three_trips.rounds > 0) {
        snprintf(name, sizeof name, "%s.%u.three_trips", shape->name, n);
        pair_report_peer(&seen.three_trips, name, "byhand");
    }
    return seen;
}

/* The goal, and what the same run saw against the stronger peer. */
static void
report_both(const char *name, const struct comparison *seen, double target)
{
    report_goal(name, pair_ratio(&seen->pair), target);
    report_one(name, "three_trips", "", pair_ratio(&seen->three_trips), "x");
}

static void
measure_leased(const struct plan *plan)
{
    struct comparison one, many, most;

    one = compare(plan, &shapes[0], 1);
    if (!plan->quick)
        (void)compare(plan, &shapes[0], 16);
    many = compare(plan, &shapes[0], 64);
    most = compare(plan, &shapes[0], 256);
    report_goal("once.leased.256", pair_ratio(&most.pair), 12);
    report_goal("once.leased.64", pair_ratio(&many.pair), 8);
    report_goal("once.leased.1", pair_ratio(&one.pair), 1.0);
    report_goal("once.leased.cpu", pair_cpu_ratio(&most.pair), 12);
}

static struct comparison
compare_at_64(const struct plan *plan, const struct shape *shape)
{
    if (!plan->quick) {
        (void)compare(plan, shape, 1);
        (void)compare(plan, shape, 16);
        (void)compare(plan, shape, 256);
    }
    return compare(plan, shape, 64);
}

static void
measure_interactive(const struct plan *plan)
{
    struct comparison many = compare_at_64(plan, &shapes[1]);

    report_both("once.interactive.64", &many, 1.5);
}

static void
measure_statement(const struct plan *plan)
{
    struct comparison one = compare(plan, &shapes[2], 1), most;

    if (!plan->quick) {
        (void)compare(plan, &shapes[2], 16);
        (void)compare(plan, &shapes[2], 64);
    }
    most = compare(plan, &shapes[2], 256);
    (void)compare_at_64(plan, &shapes[4]);
    report_both("once.statement.256", &most, 12);
    report_both("once.statement.1", &one, 2);
}

static void
measure_grouped(const struct plan *plan)
{
    struct comparison many = compare_at_64(plan, &shapes[3]);

    report_both("once.grouped.64", &many, 3);
}

/* Answers that are there already, against an echo of the same size. */
static double
compare_replays(const struct plan *plan, const char *name,
                struct idem_channel *channel, loop_start_fn *start)
{
    struct pair pair = {0};

    for (unsigned i = 0; i < plan->rounds; i++) {
        struct measure replays = run_ours(plan, channel, start, 64);
        struct measure echoes = run_ours(plan, channel, call_echo, 64);

        pair_note(&pair, &replays, &echoes);
    }
    pair_report(&pair, name, "echo");
    return pair_ratio(&pair);
}

static void
measure_replays(const struct plan *plan)
{
    calls_record(plan->stage.shielded_channel);
    (void)compare_replays(plan, "replay.postgres.64", plan->stage.channel,
                          call_lease_again);
    report_goal("once.replay.redis",
                compare_replays(plan, "replay.redis.64",
                                plan->stage.shielded_channel,
                                call_popular_again),
                0.3);
    report_goal("once.replay.memory",
                compare_replays(plan, "replay.memory.64", plan->stage.channel,
                                call_popular_again),
                0.8);
}

/* What a shape leaves in the log: bytes, commits, fsyncs. Backends tell of
 * their fsyncs about once a second, so that these are of a longer time. */
struct writes {
    int64_t bytes, commits, fsyncs, calls;
};

static struct writes
count_writes(const struct plan *plan, const char *table)
{
    const struct postgres *postgres = plan->stage.postgres;

    return (struct writes){
        .bytes = postgres_sql(
            postgres, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"),
        .commits = postgres_sql(
            postgres,
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"),
        .fsyncs = postgres_sql(postgres, "SELECT wal_sync FROM pg_stat_wal"),
        .calls = postgres_sql(postgres, "SELECT count(*) FROM %s", table),
    };
}

static void
report_writes(const char *prefix, const char *name, const struct writes *before,
              const struct writes *after)
{
    double calls = (double)(after->calls - before->calls);
    double wal = (double)(after->bytes - before->bytes) / calls;
    double commits = (double)(after->commits - before->commits) / calls;
    double fsyncs = (double)(after->fsyncs - before->fsyncs) / calls;

    report_one(prefix, name, ".wal", wal, "bytes/call");
    report_one(prefix, name, ".xids", commits, "a call");
    report_one(prefix, name, ".fsyncs", fsyncs, "a call");
}

static void
measure_writes(const struct plan *plan)
{
    struct plan longer = *plan;

    longer.seconds = 4 * plan->seconds;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct writes before = count_writes(plan, "idem_record"), after;

        (void)run_ours(&longer, plan->stage.channel, shapes[i].start, 64);
        after = count_writes(plan, "idem_record");
        report_writes("once", shapes[i].name, &before, &after);
        before = count_writes(plan, "byhand_call");
        (void)run_peer(&longer, shapes[i].peer, 64);
        after = count_writes(plan, "byhand_call");
        report_writes("byhand", shapes[i].name, &before, &after);
    }
}

/* So many of ten calls are of a key that has its answer. */
static void
measure_duplicates(const struct plan *plan)
{
    static const unsigned tenths[] = {0, 1, 5, 9};

    calls_record(plan->stage.channel);
    for (size_t i = 0; i < sizeof tenths / sizeof *tenths; i++) {
        char name[32];
        double rate;
        struct measure seen;

        calls_mix(tenths[i]);
        seen = run_ours(plan, plan->stage.channel, call_lease_mixed, 64);
        rate = rate_of(&seen);
        snprintf(name, sizeof name, "duplicates.%u", tenths[i] * 10);
        report_one("once", name, "", rate, "calls/s");
    }
}

/* One call after another while very many duplicates wait for a slow one. */
static void
measure_unrelated(const struct plan *plan)
{
    struct gate *gate = gate_shut(plan->stage.channel, WAITING);
    double longest = 0;

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct measure seen =
            run_ours(plan, plan->stage.channel, shapes[i].start, 1);
        double p50 = (double)seen.p50_ns / 1e6, p99 = (double)seen.p99_ns / 1e6;
        char name[64];

        snprintf(name, sizeof name, "unrelated.%s", shapes[i].name);
        report_one("once", name, ".p50", p50, "ms");
        report_one("once", name, ".p99", p99, "ms");
        if (p99 > longest)
            longest = p99;
    }
    gate_open(gate);
    report_limit("once.unrelated", longest, 100);
}

/* Those with the same first calls stand side by side, and share servers. */
static const struct part {
    const char *name;
    void (*measure)(const struct plan *plan);
    loop_start_fn *first; /* the calls in front of the first upkeep */
} parts[] = {
    {"statement", measure_statement, call_state},
    {"interactive", measure_interactive, call_state},
    {"grouped", measure_grouped, call_state},
    {"leased", measure_leased, call_lease},
    {"writes", measure_writes, call_lease},
    {"duplicates", measure_duplicates, call_lease},
    {"unrelated", measure_unrelated, call_lease},
    {"replay", measure_replays, call_lease},
};

static void
measure(struct plan *plan, const char *only)
{
    loop_start_fn *settled = NULL;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (only && strcmp(only, parts[i].name) != 0)
            continue;
        if (settled != parts[i].first) {
            if (settled)
                stage_close(&plan->stage);
            stage_open(&plan->stage);
            settle(plan, parts[i].first);
        }
        settled = parts[i].first;
        parts[i].measure(plan);
    }
    if (settled)
        stage_close(&plan->stage);
}

int
main(int argc, char **argv)
{
    static const uint8_t body[BODY];
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const char *only = argc > 1 + quick ? argv[1 + quick] : NULL;
    struct plan plan = {.rounds = quick ? 3 : PAIR_ROUNDS_MAX,
                        .warm = quick ? 0.15 : 0.3,
                        .seconds = quick ? 0.4 : 1.0,
                        .quick = quick};

    calls_prepare(body, sizeof body, ANSWER);
    measure(&plan, only);
    return 0;
}
