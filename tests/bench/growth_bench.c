/* Whether a call takes longer when the store is full.
 *
 *    growth_bench [--quick | ROWS]     50,000,000 is the default, --quick a
 * tenth
 *
 * Measures Lease with 64 in flight at a fiftieth of ROWS and at ROWS records,
 * in today's partition, which is where new records go. Needs half a GiB of disk
 * for each million and, for the default, about a quarter of an hour on two
 * cores. */
#include "support.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "postgres.h"
#include "stage.h"

#define MANY INT64_C(50000000)
#define TENTH (MANY / 10)
#define FEW_IN 50 /* one of so many is there when it is first measured */
#define STEP INT64_C(250000) /* rows that are loaded in one transaction */
#define LOADERS 2
#define ROUNDS 5
#define IN_FLIGHT 64
#define BODY 64
#define ANSWER 256
#define RAW 32 /* bytes of each fingerprint; the answer is made of them */

/* Partitions are loaded with records that are over, so that there is no room to
 * be left beside them. Afterwards they are as the store makes them. */
#define EACH_PARTITION(change)                                                 \
    "DO $$ DECLARE part regclass; BEGIN FOR part IN SELECT inhrelid FROM "     \
    "pg_inherits WHERE inhparent = 'idem_record'::regclass LOOP "              \
    "EXECUTE format('ALTER TABLE %%s SET (fillfactor = " change                \
    ")', part); END LOOP; END $$"

/* The records from `from` to `to`, which several threads load. */
struct load {
    const struct stage *stage;
    int64_t all, to;
    atomic_int_fast64_t next;
};

/* A load that is cut off is begun again from nothing: it need not be on the
 * disk before its end. Nor is the table cleaned under the measurement, where
 * the fuller one would wait for more of that. */
static void
set_for_load(const struct stage *stage, bool loading)
{
    static const char *const settings[] = {
        "autovacuum = off", "synchronous_commit = off",
        "full_page_writes = off", "max_wal_size = '16GB'"};

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *name = settings[i];

        if (loading || i == 0)
            postgres_sql(stage->postgres, "ALTER SYSTEM SET %s", name);
        else
            postgres_sql(stage->postgres, "ALTER SYSTEM RESET %.*s",
                         (int)strcspn(name, " "), name);
    }
    postgres_sql(stage->postgres, "SELECT pg_reload_conf()");
}

/* Minted one after another since midnight. Whatever a record has of random
 * bytes is one digest, which is made once: OFFSET 0 keeps it apart. */
static void
load_step(const struct load *load, int64_t from, int64_t to)
{
    postgres_sql(
        load->stage->postgres,
        "WITH day AS (SELECT floor(extract(epoch FROM date_trunc('day', now() "
        "AT TIME ZONE 'UTC')))::bigint * 1000 AS ms, floor(extract(epoch FROM "
        "now() AT TIME ZONE 'UTC' - date_trunc('day', now() AT TIME ZONE "
        "'UTC')))::bigint * 1000 AS span) "
        "INSERT INTO idem_record (key, state, token, executions, owner, "
        "done_at, tenant, scope, key_text, raw, canonical, version, status, "
        "message, reason, reply, trailers) "
        "SELECT (lpad(to_hex(ms + span * n / %" PRId64 "), 12, '0') "
        "|| left(h, 20))::uuid, 'DONE', 1, 1, n, now(), '', "
        "'bench.v1.Bench/Lease', h || 'growth', raw, raw, 1, 0, '', '', "
        "decode(repeat(encode(raw, 'hex'), %d), 'hex'), '' FROM day, "
        "LATERAL (SELECT n, h, decode(h || h, 'hex') AS raw FROM (SELECT n, "
        "md5(n::text) AS h FROM generate_series(%" PRId64 "::bigint, %" PRId64
        ") AS n OFFSET 0) AS hashed OFFSET 0) AS one",
        load->all * 2, ANSWER / RAW, from, to - 1);
}

static void *
load_some(void *with)
{
    struct load *load = with;
    int64_t at;

    while ((at = atomic_fetch_add(&load->next, STEP)) < load->to) {
        int64_t to = load->to - at < STEP ? load->to : at + STEP;

        load_step(load, at, to);
        fprintf(stderr, "\r%" PRId64 " of %" PRId64 " records", to, load->to);
    }
    return NULL;
}

static void
fill(const struct stage *stage, int64_t from, int64_t to, int64_t all)
{
    struct load load = {.stage = stage, .all = all, .to = to};
    pthread_t threads[LOADERS];

    atomic_init(&load.next, from);
    set_for_load(stage, true);
    postgres_sql(stage->postgres, EACH_PARTITION("100"));
    for (int i = 0; i < LOADERS; i++)
        if (pthread_create(&threads[i], NULL, load_some, &load) != 0)
            exit(1);
    for (int i = 0; i < LOADERS; i++)
        pthread_join(threads[i], NULL);
    fprintf(stderr, "\n");
    postgres_sql(stage->postgres, EACH_PARTITION("25"));
    postgres_sql(stage->postgres, "ANALYZE idem_record");
    set_for_load(stage, false);
    postgres_sql(stage->postgres, "CHECKPOINT");
}

/* Microseconds a call, in each round. */
static void
measure_calls(const struct stage *stage, double us[ROUNDS])
{
    struct idem_channel *channel = stage->channel;
    const struct loop_options options = {&channel, 1, IN_FLIGHT, call_lease};
    const struct tally_window window = {
        .running = IN_FLIGHT,
        .warm = 1,
        .seconds = 3,
        .others = stage->pids,
        .n_others = 2,
    };

    for (int i = 0; i < ROUNDS; i++) {
        struct tally *tally = tally_new();
        struct loop *loop = loop_start(&options, tally);
        struct measure seen = tally_run(tally, &window);

        loop_free(loop);
        tally_free(tally);
        us[i] = seen.seconds / (double)seen.calls * 1e6;
    }
}

static bool
read_rows(int64_t *rows, int argc, char **argv)
{
    char *end;

    *rows = MANY;
    if (argc < 2)
        return true;
    *rows = TENTH;
    if (argc == 2 && strcmp(argv[1], "--quick") == 0)
        return true;
    errno = 0;
    *rows = strtoll(argv[1], &end, 10);
    return argc == 2 && !errno && end != argv[1] && !*end && *rows >= FEW_IN;
}

int
main(int argc, char **argv)
{
    static const uint8_t body[BODY];
    double few[ROUNDS], many[ROUNDS];
    struct stage stage;
    int64_t rows;

    if (!read_rows(&rows, argc, argv)) {
        fprintf(stderr,
                "usage: growth_bench [--quick | ROWS], at least %d rows\n",
                FEW_IN);
        return 2;
    }
    calls_prepare(body, sizeof body, ANSWER);
    stage_open(&stage);
    fill(&stage, 0, rows / FEW_IN, rows);
    measure_calls(&stage, few);
    report("once.growth.few", median(few, ROUNDS), "us/call");
    fill(&stage, rows / FEW_IN, rows, rows);
    measure_calls(&stage, many);
    report("once.growth.many", median(many, ROUNDS), "us/call");
    report_limit(rows == MANY ? "once.growth.50m" : "once.growth",
                 median(many, ROUNDS) / median(few, ROUNDS), 1.3);
    stage_close(&stage);
    return 0;
}
