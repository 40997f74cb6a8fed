#include "support.h"

#include "fake_redis.h"
#include "shield_world.h"

/* The shield in front of a Redis that lies (faults 38, 39; B061): no foreign
 * answer is ever shown (shield_ask fails the test when one is), every
 * corruption is counted, nothing crashes, and an honest Redis is used again. */

#define RECORDS 16

static struct fake_redis *fake;
static struct idem_shield *shield;

static int
start(void **state)
{
    (void)state;
    fake = fake_redis_start();
    shield = shield_open_connected((struct idem_redis_options){
        .url = fake_redis_url(fake), .breaker_failures = 1000});
    for (unsigned n = 0; n < RECORDS; n++)
        shield_learn_for_sure(shield, n);
    return 0;
}

static int
stop(void **state)
{
    (void)state;
    idem_shield_free(shield);
    fake_redis_free(fake);
    return 0;
}

/* Look until so many lies are told; waits out each lost connection. */
static void
hear_lies(enum fake_redis_lie lie, unsigned every, unsigned count)
{
    unsigned before = fake_redis_lies(fake);

    fake_redis_lie(fake, lie, every);
    for (unsigned n = 0; fake_redis_lies(fake) - before < count; n++) {
        uint64_t skipped = shield_counts(shield).skipped;

        shield_ask(shield, n * 7 % RECORDS);
        if (shield_counts(shield).skipped > skipped)
            shield_await_connected(shield);
    }
    fake_redis_lie(fake, FAKE_REDIS_HONEST, 1);
}

static void
assert_works_again(void)
{
    shield_await_connected(shield);
    for (unsigned n = 0; n < RECORDS; n++)
        assert_int_equal(shield_ask(shield, n), IDEM_VERDICT_DONE);
}

/* Lies that keep their place in the row cost one look each. */
static void
assert_rejects_all(enum fake_redis_lie lie)
{
    struct idem_shield_counts before = shield_counts(shield), after;
    unsigned connections = fake_redis_connections(fake);

    hear_lies(lie, 3, 3000);
    after = shield_counts(shield);
    assert_int_equal(after.rejected - before.rejected, 3000);
    assert_int_equal(after.failed, before.failed);
    assert_int_equal(fake_redis_connections(fake), connections);
    assert_works_again();
}

static void
every_flipped_bit_is_rejected(void **state)
{
    (void)state;
    assert_rejects_all(FAKE_REDIS_FLIP);
}

static void
every_cut_value_is_rejected(void **state)
{
    (void)state;
    assert_rejects_all(FAKE_REDIS_TRUNCATE);
}

static void
a_value_that_is_denied_is_a_miss(void **state)
{
    struct idem_shield_counts before = shield_counts(shield), after;

    (void)state;
    hear_lies(FAKE_REDIS_NIL, 2, 1000);
    after = shield_counts(shield);
    assert_int_equal(after.misses - before.misses, 1000);
    assert_int_equal(after.rejected, before.rejected);
    assert_works_again();
}

/* Another's good answer means that replies and commands are out of step: the
 * connection goes, too. */
static void
anothers_answer_is_rejected_and_ends_the_connection(void **state)
{
    struct idem_shield_counts before = shield_counts(shield);
    unsigned connections = fake_redis_connections(fake);

    (void)state;
    hear_lies(FAKE_REDIS_SWAP, 3, 20);
    assert_int_equal(shield_counts(shield).rejected - before.rejected, 20);
    assert_works_again();
    assert_true(fake_redis_connections(fake) >= connections + 20);
}

/* Fault 39. */
static void
answers_that_are_late_by_one_are_rejected(void **state)
{
    struct idem_shield_counts before = shield_counts(shield);

    (void)state;
    hear_lies(FAKE_REDIS_SHIFT, 2, 20);
    assert_int_equal(shield_counts(shield).rejected - before.rejected, 20);
    assert_works_again();
}

/* What no GET is answered with, however it is framed. */
static void
no_nonsense_brings_the_shield_down(void **state)
{
    const enum fake_redis_lie lies[] = {
        FAKE_REDIS_STATUS,  FAKE_REDIS_INTEGER, FAKE_REDIS_ARRAY,
        FAKE_REDIS_TWICE,   FAKE_REDIS_NOISE,   FAKE_REDIS_ENDLESS,
        FAKE_REDIS_HANG_UP,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct idem_shield_counts before = shield_counts(shield), after;

        hear_lies(lies[i], 2, 5);
        assert_works_again();
        after = shield_counts(shield);
        if (lies[i] != FAKE_REDIS_TWICE) /* the answer itself was right */
            assert_true(after.rejected + after.failed >=
                        before.rejected + before.failed + 5);
    }
}

static void
an_error_is_a_miss_that_is_counted(void **state)
{
    struct idem_shield_counts before = shield_counts(shield);

    (void)state;
    hear_lies(FAKE_REDIS_READONLY, 2, 50);
    hear_lies(FAKE_REDIS_LOADING, 2, 50);
    assert_int_equal(shield_counts(shield).failed - before.failed, 100);
    assert_works_again();
}

static void
failures_in_a_row_open_the_breaker(void **state)
{
    struct idem_shield_counts before, after;

    (void)state;
    idem_shield_free(shield); /* the fake serves one connection at a time */
    shield = shield_open_connected((struct idem_redis_options){
        .url = fake_redis_url(fake),
        .breaker_failures = 5,
        .breaker_ms = 60000,
    });
    before = shield_counts(shield);
    fake_redis_lie(fake, FAKE_REDIS_READONLY, 1);
    for (unsigned n = 0; n < 50; n++)
        assert_int_equal(shield_ask(shield, 1), IDEM_VERDICT_ABSENT);
    after = shield_counts(shield);
    assert_int_equal(after.failed - before.failed, 5);
    assert_int_equal(after.skipped - before.skipped, 45);
}

#define WITH_FAKE(test) cmocka_unit_test_setup_teardown(test, start, stop)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FAKE(every_flipped_bit_is_rejected),
        WITH_FAKE(every_cut_value_is_rejected),
        WITH_FAKE(a_value_that_is_denied_is_a_miss),
        WITH_FAKE(anothers_answer_is_rejected_and_ends_the_connection),
        WITH_FAKE(answers_that_are_late_by_one_are_rejected),
        WITH_FAKE(no_nonsense_brings_the_shield_down),
        WITH_FAKE(an_error_is_a_miss_that_is_counted),
        WITH_FAKE(failures_in_a_row_open_the_breaker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
