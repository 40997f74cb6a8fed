#include "asked.h"

#include <stdlib.h>

/* What the database reads for a call of mode LEASED, whatever its planner
 * believes of the tables. */

static int64_t
tuples_read(struct postgres_world *world, const char *column)
{
    return postgres_sql(world->postgres,
                        "SELECT coalesce(sum(%s), 0)::bigint FROM "
                        "pg_stat_user_tables AS t JOIN pg_stat_user_indexes AS "
                        "i USING (relid) WHERE t.relname LIKE 'idem_record%%'",
                        column);
}

/* A session tells what it has read when it ends, at the latest. */
static void
end_sessions(struct postgres_world *world)
{
    idem_store_free(world->suite.store);
    world->suite.store = NULL;
    assert_true(postgres_wait(world->postgres, 20000,
                              "SELECT (count(*) = 0)::int FROM "
                              "pg_stat_activity WHERE application_name = "
                              "'idem'"));
}

/* Claims, completions and replays in batches of n, and what the database read
 * for them. */
static void
assert_reads_by_key(struct postgres_world *world, unsigned n,
                    const char *partition)
{
    struct asked *asked = calloc(n, sizeof(*asked));
    int64_t scanned = tuples_read(world, "seq_tup_read"), looked_up;
    int64_t before = tuples_read(world, "idx_tup_read"), after;

    assert_non_null(asked);
    for (unsigned i = 0; i < n; i++)
        asked_open(&asked[i], world, i % 2 == 0);
    asked_claim(world, asked, n);
    asked_complete(world, asked, n);
    for (unsigned i = 0; i < n; i++) {
        asked[i].call.ticket.repeat = true;
        ask(&asked[i], asked_ops(world)->claim, IDEM_VERDICT_DONE);
    }
    asked_together(world, asked, n);
    assert_asked(asked, n);
    for (unsigned i = 0; i < n; i++)
        call_close(&asked[i].call);
    free(asked);
    end_sessions(world);
    after = tuples_read(world, "seq_tup_read");
    looked_up = tuples_read(world, "idx_tup_read") - before;
    print_message("%s, batches of %u: %.2f by index, %.2f by scans a call\n",
                  partition, n, (double)looked_up / n,
                  (double)(after - scanned) / n);
    assert_int_equal(after, scanned);
    assert_in_range(looked_up, 2 * n, 4 * n);
}

static void
read_by_key_at_every_size(struct postgres_world *world, const char *partition,
                          const char *prepare)
{
    static const unsigned sizes[] = {1, 16, 256};

    for (unsigned i = 0; i < 3; i++) {
        postgres_sql(world->postgres, "%s", prepare);
        world_reopen(world);
        assert_reads_by_key(world, sizes[i], partition);
    }
}

#define FILL(table, columns, values)                                           \
    "INSERT INTO " table " (key, state, token, executions, done_at, tenant, "  \
    "scope, key_text, status" columns ") SELECT (lpad(to_hex(floor(extract("   \
    "epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || "             \
    "substr(md5(random()::text), 1, 20))::uuid, 'DONE', 1, 1, now(), '', '', " \
    "'', 0" values " FROM generate_series(1, 20000); "

/* dedup.md 6d. */
static void
a_key_is_looked_up_whatever_the_planner_believes(void **state)
{
    static const char fresh[] = "TRUNCATE idem_record, idem_record_opaque";
    static const char analyzed[] = "TRUNCATE idem_record, idem_record_opaque; "
                                   "ANALYZE idem_record, idem_record_opaque";
    static const char full[] =
        "TRUNCATE idem_record, idem_record_opaque; " FILL("idem_record", "", "")
            FILL("idem_record_opaque", ", reap_at, gone_at",
                 ", now() + interval '1 day', now() + interval '1 day'") //
        "ANALYZE idem_record, idem_record_opaque";

    read_by_key_at_every_size(*state, "fresh", fresh);
    read_by_key_at_every_size(*state, "empty and analyzed", analyzed);
    read_by_key_at_every_size(*state, "full", full);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_looked_up_whatever_the_planner_believes),
    };

    return cmocka_run_group_tests(tests, asked_set_up, asked_tear_down);
}
