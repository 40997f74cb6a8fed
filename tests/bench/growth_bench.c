/* Whether a call takes longer when the store is full.
 *
 *    growth_bench [--quick | ROWS]     50,000,000 is the default, --quick a
 * tenth
 *
 * Two stores, each on a PostgreSQL of its own: one has ROWS records in today's
 * partition, which is where new records go, the other a fiftieth of them. Lease
 * is measured with 64 in flight on the one and the other in turn; the ratio is
 * the median of the rounds'. Needs half a GiB of disk for each million and, for
 * the default, about a quarter of an hour on two cores. */
#include "support.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "pair.h"
#include "postgres.h"
#include "stage.h"

#define MANY INT64_C(50000000)
#define TENTH (MANY / 10)
#define FEW_IN 50            /* one of so many is in the other store */
#define STEP INT64_C(250000) /* rows that are loaded in one transaction */
#define LOADERS 2
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

/* So many records, which several threads load. */
struct load {
    const struct stage *stage;
    int64_t rows;
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
        load->rows * 2, ANSWER / RAW, from, to - 1);
}

static void *
load_some(void *with)
{
    struct load *load = with;
    int64_t at;

    while ((at = atomic_fetch_add(&load->next, STEP)) < load->rows) {
        int64_t to = load->rows - at < STEP ? load->rows : at + STEP;

        load_step(load, at, to);
        fprintf(stderr, "\r%" PRId64 " of %" PRId64 " records", to, load->rows);
    }
    return NULL;
}

static void
fill(const struct stage *stage, int64_t rows)
{
    struct load load = {.stage = stage, .rows = rows};
    pthread_t threads[LOADERS];

    atomic_init(&load.next, 0);
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

static struct measure
measure_calls(const struct stage *stage)
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
    struct tally *tally = tally_new();
    struct loop *loop = loop_start(&options, tally);
    struct measure seen = tally_run(tally, &window);

    loop_free(loop);
    tally_free(tally);
    return seen;
}

static void
open_filled(struct stage *stage, int64_t rows)
{
    stage_open(stage);
    fill(stage, rows);
}

static double
us_per_call(double calls_per_second)
{
    return 1e6 / calls_per_second;
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
    struct stage few, many;
    struct pair pair = {0};
    int64_t rows;

    if (!read_rows(&rows, argc, argv)) {
        fprintf(stderr,
                "usage: growth_bench [--quick | ROWS], at least %d rows\n",
                FEW_IN);
        return 2;
    }
    calls_prepare(body, sizeof body, ANSWER);
    open_filled(&few, rows / FEW_IN);
    open_filled(&many, rows);
    for (int i = 0; i < PAIR_ROUNDS_MAX; i++) {
        struct measure of_few = measure_calls(&few);
        struct measure of_many = measure_calls(&many);

        pair_note(&pair, &of_few, &of_many);
    }
    report("once.growth.few", us_per_call(median(pair.ours, pair.rounds)),
           "us/call");
    report("once.growth.many", us_per_call(median(pair.peers, pair.rounds)),
           "us/call");
    report_limit(rows == MANY ? "once.growth.50m" : "once.growth",
                 pair_ratio(&pair), 1.3);
    stage_close(&many);
    stage_close(&few);
    return 0;
}
