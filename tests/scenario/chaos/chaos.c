/* Two servers, duplicates on both, and all that may happen to them, PostgreSQL
 * and Redis at once; then the checker (cases/faults.md I1 to I10; faults 17,
 * 18, 25, 33, 34, 74). Its last line says what was seen; exits 0 when no rule
 * was broken. With --break it exits 0 when the seeded bug was found.
 *
 *   chaos --seconds 600 --keys 20000 --seed 7
 */
#include "support.h"

#include "calls.h"
#include "child.h"
#include "effects.h"
#include "harm.h"
#include "memory.h"
#include "sessions.h"
#include "streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_MS 400 /* between two harms, at most */
#define LEASE_MS 900 /* of effects.proto */
#define REST_MS 30000
#define SESSIONS (16 + 2 + 2 + 1) /* of a store: postgres.h, and its upkeep */
#define LONG_S 300                /* a run that says something of memory */
#define NO_END                                                                 \
    "EVAL \"local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) "          \
    "do if redis.call('PTTL', k) < 0 then n = n + 1 end end "                  \
    "return n\" 0"

static void
do_harm(struct site *site, struct calls *calls,
        const struct chaos_options *options, unsigned done[HARMS],
        struct memory_watch *memory)
{
    const struct idem_clock *clock = idem_clock_system();
    int64_t now_ns = clock->monotonic_ns(clock);
    int64_t half_ns = (int64_t)options->seconds * 500000000;
    int64_t middle_ns = now_ns + half_ns, until_ns = middle_ns + half_ns;
    struct dice dice = {~options->seed};

    while (now_ns < until_ns &&
           calls_wait(calls, 1 + dice_roll(&dice, PAUSE_MS))) {
        memory_look(memory, site, now_ns >= middle_ns);
        done[harm_do(site, calls, &dice)]++;
        now_ns = clock->monotonic_ns(clock);
    }
}

/* I9, in a Redis. */
static void
tell_cached(struct redis *redis, struct checker *checker)
{
    char reply[64];

    redis_say(redis, NO_END, reply, sizeof(reply));
    if (strcmp(reply, ":0\r\n") != 0)
        checker_cached(checker, reply, -1);
}

static unsigned
check(struct site *site, struct calls *calls, struct sessions *sessions,
      struct streams *streams)
{
    struct checker *checker = checker_new();
    unsigned violations;

    calls_tell(calls, checker);
    sessions_tell(sessions, checker);
    streams_tell(streams, checker);
    checker_read_postgres(checker, postgres_conninfo(site->postgres),
                          EFFECTS_KEYS);
    checker_read_log(checker, site->push_log);
    tell_cached(redis_house_master(site->redis), checker);
    tell_cached(redis_house_other(site->redis), checker);
    violations = checker_run(checker, LEASE_MS, checker_print, NULL);
    checker_free(checker);
    return violations;
}

static void
print(struct site *site, struct calls *calls, const unsigned done[HARMS])
{
    calls_print(calls);
    for (unsigned i = 0; i < HARMS; i++)
        printf("%-28s %8u\n", harm_text((enum harm)i), done[i]);
    printf("%-28s %8u\n", "… links cut so", tcp_proxy_cuts(site->proxy));
}

/* Whoever is down now has ended by itself: harm starts what it has killed. */
static unsigned
count_fallen(const struct site *site)
{
    unsigned fallen = 0;

    for (unsigned i = 0; i < SITE_SERVERS; i++) {
        if (child_alive(site->servers[i].pid))
            continue;
        printf("server %u has ended by itself; its last words:\n", i);
        child_show(site->servers[i].log);
        fallen++;
    }
    return fallen;
}

/* When all is answered nobody waits for anybody, no transaction is open, and
 * each server has the sessions that it was given. */
static bool
is_at_rest(const struct site *site)
{
    char sql[400];

    snprintf(sql, sizeof(sql),
             "SELECT (count(*) <= %d AND count(*) FILTER (WHERE state LIKE "
             "'idle in transaction%%' OR wait_event_type = 'Lock') = 0)::int "
             "FROM pg_stat_activity WHERE backend_type = 'client backend'",
             SITE_SERVERS * SESSIONS + 1);
    return postgres_wait(site->postgres, REST_MS, sql);
}

/* Sessions that are there when no server is. */
static bool
leaves_no_connection(struct site *site)
{
    site_stop(site);
    return postgres_wait(site->postgres, REST_MS,
                         "SELECT (count(*) = 1)::int FROM pg_stat_activity "
                         "WHERE backend_type = 'client backend'");
}

static int
run(const struct chaos_options *options)
{
    struct site site;
    struct calls *calls;
    struct sessions *sessions;
    struct streams *streams;
    unsigned done[HARMS] = {0}, violations;
    struct memory_watch memory = {{0, 0}};
    bool clean, rest, flat;

    site_open(&site, options->outside);
    calls = calls_start(&site, options);
    sessions = sessions_start(&site, options);
    streams = streams_start(&site, options);
    do_harm(&site, calls, options, done, &memory);
    if (count_fallen(&site) > 0)
        exit(1); /* nobody would answer the calls that settle */
    calls_settle(calls);
    sessions_settle(sessions);
    streams_settle(streams);
    print(&site, calls, done);
    sessions_print(sessions);
    streams_print(streams);
    if (count_fallen(&site) > 0)
        exit(1);
    rest = is_at_rest(&site);
    flat = memory_is_flat(&memory) || options->seconds < LONG_S;
    clean = leaves_no_connection(&site);
    violations = check(&site, calls, sessions, streams);
    printf("seed %" PRIu64 ": %u rules broken, connections %s, at the end %s, "
           "memory %s\n",
           options->seed, violations, clean ? "none left" : "LEFT",
           rest ? "at rest" : "BLOCKED", flat ? "flat" : "GROWING");
    calls_free(calls);
    sessions_free(sessions);
    streams_free(streams);
    site_close(&site);
    return options->outside ? violations == 0
                            : violations > 0 || !clean || !rest || !flat;
}

int
main(int argc, char **argv)
{
    struct chaos_options options = {
        .seconds = 20,
        .keys = 2000,
        .clients = 16,
        .seed = (uint64_t)getpid() * 2654435761u + 1,
    };

    if (!chaos_options_parse(&options, argc, argv))
        return 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("chaos --seconds %u --keys %u --clients %u --seed %" PRIu64 "%s\n",
           options.seconds, options.keys, options.clients, options.seed,
           options.outside ? " --break outside" : "");
    return run(&options);
}
