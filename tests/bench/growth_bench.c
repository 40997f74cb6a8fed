/* Whether a call takes longer when the store is full.
 *
 *    growth_bench [ROWS]     50,000,000 is the default
 *
 * Measures Lease with 64 in flight at 1,000,000 records and at ROWS, in today's
 * partition, which is where new records go. Needs half a GiB of disk for each
 * million and, for the default, about a quarter of an hour. */
#include "support.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "calls.h"
#include "postgres.h"
#include "stage.h"

#define FEW INT64_C(1000000)
#define MANY INT64_C(50000000)
#define STEP INT64_C(1000000) /* rows that are loaded in one transaction */
#define ROUNDS 5
#define IN_FLIGHT 64
#define BODY 64
#define ANSWER 256

/* Partitions are loaded with records that are over, so that there is no room to
 * be left beside them. Afterwards they are as the store makes them. */
#define EACH_PARTITION(change)                                                 \
    "DO $$ DECLARE part regclass; BEGIN FOR part IN SELECT inhrelid FROM "     \
    "pg_inherits WHERE inhparent = 'idem_record'::regclass LOOP "              \
    "EXECUTE format('ALTER TABLE %%s SET (fillfactor = " change                \
    ")', part); END LOOP; END $$"

/* Records from $1 on, minted one after another since midnight. */
static void
load_step(const struct stage *stage, int64_t from, int64_t rows)
{
    postgres_sql(
        stage->postgres,
        "WITH day AS (SELECT floor(extract(epoch FROM date_trunc('day', now() "
        "AT TIME ZONE 'UTC'))) * 1000 AS ms, extract(epoch FROM now() AT TIME "
        "ZONE 'UTC' - date_trunc('day', now() AT TIME ZONE 'UTC')) * 1000 "
        "AS span) "
        "INSERT INTO idem_record (key, state, token, executions, owner, "
        "done_at, tenant, scope, key_text, raw, canonical, version, status, "
        "message, reason, reply, trailers) "
        "SELECT (lpad(to_hex((ms + span * n / %" PRId64 ")::bigint), 12, '0') "
        "|| substr(md5(n::text), 1, 20))::uuid, 'DONE', 1, 1, n, now(), '', "
        "'bench.v1.Bench/Lease', md5(n::text) || 'growth', "
        "decode(md5(n::text) || md5(n::text), 'hex'), "
        "decode(md5(n::text) || md5(n::text), 'hex'), 1, 0, '', '', "
        "decode(repeat(md5(n::text), %d), 'hex'), '' "
        "FROM day, generate_series(%" PRId64 ", %" PRId64 ") AS n",
        MANY * 2, ANSWER / 16, from, from + rows - 1);
}

static void
load(const struct stage *stage, int64_t from, int64_t to)
{
    postgres_sql(stage->postgres, EACH_PARTITION("100"));
    for (int64_t at = from; at < to; at += STEP) {
        load_step(stage, at, to - at < STEP ? to - at : STEP);
        fprintf(stderr, "\r%" PRId64 " of %" PRId64 " records", at, to);
    }
    fprintf(stderr, "\n");
    postgres_sql(stage->postgres, EACH_PARTITION("25"));
    postgres_sql(stage->postgres, "ANALYZE idem_record");
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
    errno = 0;
    *rows = strtoll(argv[1], &end, 10);
    return argc == 2 && !errno && end != argv[1] && !*end && *rows > FEW;
}

int
main(int argc, char **argv)
{
    static const uint8_t body[BODY];
    double few[ROUNDS], many[ROUNDS];
    struct stage stage;
    int64_t rows;

    if (!read_rows(&rows, argc, argv)) {
        fprintf(stderr, "usage: growth_bench [ROWS], more than %" PRId64 "\n",
                FEW);
        return 2;
    }
    calls_prepare(body, sizeof body, ANSWER);
    stage_open(&stage);
    load(&stage, 0, FEW);
    measure_calls(&stage, few);
    report("once.growth.1m", median(few, ROUNDS), "us/call");
    load(&stage, FEW, rows);
    measure_calls(&stage, many);
    report("once.growth.full", median(many, ROUNDS), "us/call");
    report_limit("once.growth.50m", median(many, ROUNDS) / median(few, ROUNDS),
                 1.3);
    stage_close(&stage);
    return 0;
}
