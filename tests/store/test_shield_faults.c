#include "support.h"

#include "child.h"
#include "loopback.h"
#include "redis.h"
#include "shield_world.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The shield in front of a Redis that is killed, frozen, full, read-only, cut
 * off: only latency changes (semantics.md 4.5). */

static struct redis *redis;

static int
start(void **state)
{
    (void)state;
    redis = redis_start(NULL);
    return 0;
}

/* I9: whatever a test has done, no key of ours stays for ever. */
static void
assert_every_key_ends(void)
{
    char reply[1024];
    const char *at;
    unsigned keys, expires;

    redis_say(redis, "INFO keyspace", reply, sizeof(reply));
    at = strstr(reply, "db0:");
    if (!at)
        return;
    assert_int_equal(sscanf(at, "db0:keys=%u,expires=%u", &keys, &expires), 2);
    assert_int_equal(keys, expires);
}

static int
stop(void **state)
{
    (void)state;
    assert_every_key_ends();
    redis_free(redis);
    redis = NULL;
    return 0;
}

static struct idem_shield *
open_connected(struct idem_redis_options options)
{
    options.url = options.url ? options.url : redis_url(redis);
    return shield_open_connected(options);
}

static int64_t
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void
say(const char *command)
{
    char reply[256];

    redis_say(redis, command, reply, sizeof(reply));
    if (reply[0] == '-')
        fail_msg("%s: %s", command, reply);
}

/* Fault 34, first half. */
static void
a_killed_redis_is_left_out_and_found_again(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});

    (void)state;
    shield_learn_for_sure(shield, 1);
    redis_kill(redis);
    for (int i = 0; i < 100; i++)
        assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    redis_restart(redis);
    shield_await_connected(shield);
    shield_learn_for_sure(shield, 1);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    idem_shield_free(shield);
}

/* Fault 34, second half; B061, B063: it accepts and never answers. The first
 * looks cost the budget, the next ones nothing. */
static void
a_frozen_redis_costs_the_budget_and_then_nothing(void **state)
{
    struct idem_shield *shield =
        open_connected((struct idem_redis_options){.budget_ms = 400});
    struct idem_shield_counts before, after;
    int64_t began_ms;

    (void)state;
    shield_learn_for_sure(shield, 1);
    redis_freeze(redis);
    before = shield_counts(shield);
    began_ms = now_ms();
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    assert_in_range(now_ms() - began_ms, 390, 3000);
    for (int i = 0; i < 200; i++)
        assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    after = shield_counts(shield);
    assert_int_equal(after.failed - before.failed, 1);
    assert_int_equal(after.skipped - before.skipped, 200);

    redis_thaw(redis);
    shield_await_connected(shield);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    idem_shield_free(shield);
}

/* B061: what a frozen Redis answers late goes to nobody. */
static void
a_late_answer_never_meets_another_look(void **state)
{
    struct idem_shield *shield =
        open_connected((struct idem_redis_options){.budget_ms = 200});
    struct shield_asked asked[50];

    (void)state;
    for (unsigned n = 0; n < 50; n++)
        shield_learn_for_sure(shield, n);
    for (int round = 0; round < 3; round++) {
        redis_freeze(redis);
        for (unsigned n = 0; n < 50; n++)
            shield_ask_begin(shield, &asked[n], n);
        for (unsigned n = 0; n < 50; n++)
            assert_int_equal(shield_ask_end(&asked[n]), IDEM_VERDICT_ABSENT);
        redis_thaw(redis);
        shield_await_connected(shield);
        for (unsigned n = 0; n < 50; n++)
            shield_ask(shield, 49 - n);
    }
    assert_int_equal(shield_counts(shield).rejected, 0);
    idem_shield_free(shield);
}

/* A link that only fills would not notice by its looks. */
static void
a_frozen_redis_is_dropped_although_nobody_looks(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});

    (void)state;
    redis_freeze(redis);
    for (unsigned n = 0; n < 5000; n++)
        shield_learn(shield, n);
    redis_thaw(redis);
    shield_await_connected(shield);
    shield_learn_for_sure(shield, 1);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    idem_shield_free(shield);
}

static bool
fills_again(void *with)
{
    struct idem_shield *shield = with;
    uint64_t before = shield_counts(shield).fills;

    shield_learn(shield, 2);
    shield_ask(shield, 1);
    shield_ask(shield, 1);
    return shield_counts(shield).fills > before;
}

/* B060. */
static void
a_replica_answers_and_a_primary_is_filled_again(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});
    uint64_t failed;

    (void)state;
    shield_learn_for_sure(shield, 1);
    say("REPLICAOF 127.0.0.1 1");
    failed = shield_counts(shield).failed;
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    shield_learn(shield, 2);
    shield_ask(shield, 1);
    assert_int_equal(shield_ask(shield, 2), IDEM_VERDICT_ABSENT);
    assert_true(shield_counts(shield).failed > failed);
    say("REPLICAOF NO ONE");
    assert_true(child_wait_until(fills_again, shield, 20000));
    assert_int_equal(shield_ask(shield, 2), IDEM_VERDICT_DONE);
    idem_shield_free(shield);
}

/* Fault 37. */
static void
a_full_redis_answers_and_is_not_filled(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});

    (void)state;
    shield_learn_for_sure(shield, 1);
    say("CONFIG SET maxmemory 1");
    for (unsigned n = 10; n < 30; n++)
        shield_learn(shield, n);
    shield_ask(shield, 1);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
    assert_int_equal(shield_counts(shield).failed, 20);
    say("CONFIG SET maxmemory 0");
    shield_learn_for_sure(shield, 10);
    idem_shield_free(shield);
}

/* Fault 37: what was evicted is absent, and what is there is right. */
static void
an_evicting_redis_loses_answers_and_changes_none(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});
    unsigned absent = 0;

    (void)state;
    say("CONFIG SET maxmemory-policy allkeys-lru");
    say("CONFIG SET maxmemory 3mb");
    for (unsigned n = 0; n < 6000; n++) {
        shield_learn(shield, n);
        if (n % 200 == 0)
            shield_ask(shield, n);
    }
    for (unsigned n = 0; n < 6000; n++)
        absent += shield_ask(shield, n) == IDEM_VERDICT_ABSENT;
    assert_in_range(absent, 1, 5999);
    assert_int_equal(shield_counts(shield).rejected, 0);
    idem_shield_free(shield);
}

static bool
is_busy(void *with)
{
    char reply[256];

    (void)with;
    redis_say(redis, "GET x", reply, sizeof(reply));
    return strncmp(reply, "-BUSY", 5) == 0;
}

static bool
is_answered(void *shield)
{
    return shield_ask(shield, 1) == IDEM_VERDICT_DONE;
}

/* A script without end: every other command is refused. */
static void
a_busy_redis_is_a_miss_and_is_used_again(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});
    const char script[] = "EVAL \"while true do end\" 0\r\n";
    int fd;

    (void)state;
    shield_learn_for_sure(shield, 1);
    say("CONFIG SET busy-reply-threshold 10");
    fd = loopback_connect(redis_port(redis));
    assert_int_equal(send(fd, script, sizeof(script) - 1, MSG_NOSIGNAL),
                     sizeof(script) - 1);
    assert_true(child_wait_until(is_busy, NULL, 20000));
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    say("SCRIPT KILL");
    close(fd);
    assert_true(child_wait_until(is_answered, shield, 20000));
    idem_shield_free(shield);
}

/* Nobody listens; somebody listens and never takes it up. Neither is waited
 * for. */
static void
a_closed_port_and_a_black_hole_cost_nothing(void **state)
{
    unsigned ports[2];
    int hole = loopback_listen(&ports[0]);

    (void)state;
    ports[1] = loopback_free_port();
    for (int i = 0; i < 2; i++) {
        struct idem_shield *shield;
        char url[64];

        snprintf(url, sizeof(url), "redis://127.0.0.1:%u", ports[i]);
        shield = shield_open(url);
        for (unsigned n = 0; n < 100; n++)
            assert_int_equal(shield_ask(shield, n), IDEM_VERDICT_ABSENT);
        assert_int_equal(shield_counts(shield).skipped, 100);
        assert_int_equal(shield_counts(shield).failed, 0);
        idem_shield_free(shield);
    }
    close(hole);
}

/* Fault 57: the entry ends between two looks. */
static void
an_entry_that_ends_is_absent(void **state)
{
    struct idem_shield *shield =
        open_connected((struct idem_redis_options){.entry_ttl_ms = 300});
    char reply[64];

    (void)state;
    shield_learn_for_sure(shield, 1);
    do
        redis_say(redis, "DBSIZE", reply, sizeof(reply));
    while (strcmp(reply, ":0\r\n") != 0);
    assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    idem_shield_free(shield);
}

/* B064: hiredis writes without MSG_NOSIGNAL. */
static void
a_closed_connection_does_not_kill_the_process(void **state)
{
    const char *urls[] = {redis_url(redis), redis_unix_url(redis)};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct idem_shield *shield =
            open_connected((struct idem_redis_options){.url = urls[i]});

        shield_learn_for_sure(shield, 1);
        for (int round = 0; round < 5; round++) {
            say("CLIENT KILL TYPE normal");
            for (int n = 0; n < 10; n++)
                shield_ask(shield, 1);
            shield_await_connected(shield);
            assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_DONE);
        }
        idem_shield_free(shield);
    }
}

/* At most 4,096 await their reply; the others are not sent. */
static void
looks_under_way_are_bounded(void **state)
{
    struct idem_shield *shield =
        open_connected((struct idem_redis_options){.budget_ms = 500});
    struct shield_asked *asked = calloc(6000, sizeof(*asked));
    struct idem_shield_counts before = shield_counts(shield), after;

    (void)state;
    redis_freeze(redis);
    for (unsigned n = 0; n < 6000; n++)
        shield_ask_begin(shield, &asked[n], n);
    for (unsigned n = 0; n < 6000; n++)
        assert_int_equal(shield_ask_end(&asked[n]), IDEM_VERDICT_ABSENT);
    after = shield_counts(shield);
    assert_true(after.failed - before.failed <= 4096);
    assert_int_equal(
        after.failed - before.failed + after.skipped - before.skipped, 6000);
    redis_thaw(redis);
    free(asked);
    idem_shield_free(shield);
}

static void
looks_under_way_are_answered_when_the_shield_is_freed(void **state)
{
    struct idem_shield *shield = open_connected((struct idem_redis_options){0});
    struct shield_asked asked[20];

    (void)state;
    redis_freeze(redis);
    for (unsigned n = 0; n < 20; n++)
        shield_ask_begin(shield, &asked[n], n);
    idem_shield_free(shield);
    for (unsigned n = 0; n < 20; n++)
        assert_int_equal(shield_ask_end(&asked[n]), IDEM_VERDICT_ABSENT);
    redis_thaw(redis);
}

struct load {
    struct idem_shield *shield;
    atomic_bool over;
    atomic_uint answered;
};

static void *
look_again_and_again(void *with)
{
    struct load *load = with;

    for (unsigned n = 0; !atomic_load(&load->over); n++) {
        shield_ask(load->shield, n % 10);
        if (n % 7 == 0)
            shield_learn(load->shield, n % 10);
        atomic_fetch_add(&load->answered, 1);
    }
    return NULL;
}

/* B066: killed and restarted under load; every look is answered once. */
static void
kills_and_restarts_under_load_lose_no_look(void **state)
{
    struct load load = {.shield =
                            open_connected((struct idem_redis_options){0})};
    pthread_t threads[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, look_again_and_again, &load);
    for (int round = 0; round < 5; round++) {
        say("CLIENT KILL TYPE normal");
        shield_await_connected(load.shield);
        redis_restart(redis);
        shield_await_connected(load.shield);
    }
    atomic_store(&load.over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(atomic_load(&load.answered) > 0);
    assert_int_equal(shield_counts(load.shield).rejected, 0);
    idem_shield_free(load.shield);
}

#define WITH_REDIS(test) cmocka_unit_test_setup_teardown(test, start, stop)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_REDIS(a_killed_redis_is_left_out_and_found_again),
        WITH_REDIS(a_frozen_redis_costs_the_budget_and_then_nothing),
        WITH_REDIS(a_late_answer_never_meets_another_look),
        WITH_REDIS(a_frozen_redis_is_dropped_although_nobody_looks),
        WITH_REDIS(a_replica_answers_and_a_primary_is_filled_again),
        WITH_REDIS(a_full_redis_answers_and_is_not_filled),
        WITH_REDIS(an_evicting_redis_loses_answers_and_changes_none),
        WITH_REDIS(a_busy_redis_is_a_miss_and_is_used_again),
        cmocka_unit_test(a_closed_port_and_a_black_hole_cost_nothing),
        WITH_REDIS(an_entry_that_ends_is_absent),
        WITH_REDIS(a_closed_connection_does_not_kill_the_process),
        WITH_REDIS(looks_under_way_are_bounded),
        WITH_REDIS(looks_under_way_are_answered_when_the_shield_is_freed),
        WITH_REDIS(kills_and_restarts_under_load_lose_no_look),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
