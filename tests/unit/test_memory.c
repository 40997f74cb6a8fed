/* What this process keeps of recorded answers, alone. */
#include "support.h"

#include "memory.h"

#include <idem/digest.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define EPOCH "7:1:1"
#define NOW_MS 1000
#define SHARDS 16 /* of which each has its part of the bounds */

static void
write_digest(uint8_t digest[32], unsigned number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    idem_sha256_of(idem_bytes_of(text), digest);
}

static struct idem_fingerprint
fingerprint_of(unsigned number)
{
    struct idem_fingerprint fingerprint = {.version = 1};

    write_digest(fingerprint.raw, number + 1000000);
    write_digest(fingerprint.canonical, number + 2000000);
    return fingerprint;
}

static struct memory_fact
make_fact(unsigned number)
{
    char reply[64];
    const struct idem_answer answer = {
        .status = IDEM_OK,
        .reply = {(const uint8_t *)reply,
                  (size_t)snprintf(reply, sizeof(reply), "reply of %u",
                                   number)},
    };
    struct memory_fact fact = {
        .epoch = EPOCH,
        .fingerprint = fingerprint_of(number),
        .until_ms = NOW_MS + 1,
        .verdict = IDEM_VERDICT_DONE,
        .answer = shared_answer_new(&answer),
    };

    write_digest(fact.digest, number);
    return fact;
}

static void
keep(struct memory *memory, unsigned number)
{
    struct memory_fact fact = make_fact(number);

    memory_keep(memory, &fact);
    shared_answer_unref(fact.answer);
}

struct asked {
    unsigned number, request;
    const char *epoch;
    int64_t wall_ms;
};

/* A DONE is checked: it must be the answer of that number. */
static enum idem_verdict
ask(struct memory *memory, struct asked asked)
{
    uint8_t digest[32];
    const struct idem_fingerprint fingerprint = fingerprint_of(asked.request);
    const struct memory_question question = {
        digest, asked.epoch ? asked.epoch : EPOCH, &fingerprint,
        asked.wall_ms ? asked.wall_ms : NOW_MS};
    struct memory_fact fact = {.answer = NULL};
    enum idem_verdict verdict;
    char reply[64];

    write_digest(digest, asked.number);
    verdict = memory_recall(memory, &question, &fact);
    if (verdict == IDEM_VERDICT_DONE) {
        snprintf(reply, sizeof(reply), "reply of %u", asked.number);
        assert_true(
            idem_bytes_equal(fact.answer->answer.reply, idem_bytes_of(reply)));
    }
    shared_answer_unref(fact.answer);
    return verdict;
}

static enum idem_verdict
recall(struct memory *memory, unsigned number)
{
    return ask(memory, (struct asked){.number = number, .request = number});
}

static struct memory_counts
count(struct memory *memory)
{
    struct memory_counts counts;

    memory_counts(memory, &counts);
    return counts;
}

static void
what_is_kept_is_recalled_and_nothing_else(void **state)
{
    struct memory *memory = memory_new(1 << 20, 1000);

    (void)state;
    for (unsigned n = 0; n < 100; n++)
        keep(memory, n);
    for (unsigned n = 0; n < 100; n++)
        assert_int_equal(recall(memory, n), IDEM_VERDICT_DONE);
    assert_int_equal(recall(memory, 100), IDEM_VERDICT_ABSENT);
    assert_int_equal(count(memory).entries, 100);
    memory_free(memory);
}

/* Fault 45. */
static void
another_request_is_not_shown_the_answer(void **state)
{
    struct memory *memory = memory_new(1 << 20, 1000);

    (void)state;
    keep(memory, 1);
    assert_int_equal(ask(memory, (struct asked){.number = 1, .request = 2}),
                     IDEM_VERDICT_REUSED);
    memory_free(memory);
}

static void
an_abandoned_key_has_no_answer_and_only_its_request(void **state)
{
    struct memory *memory = memory_new(1 << 20, 1000);
    struct memory_fact fact = make_fact(1);

    (void)state;
    shared_answer_unref(fact.answer);
    fact.answer = NULL;
    fact.verdict = IDEM_VERDICT_ABANDONED;
    memory_keep(memory, &fact);
    assert_int_equal(recall(memory, 1), IDEM_VERDICT_ABANDONED);
    assert_int_equal(ask(memory, (struct asked){.number = 1, .request = 2}),
                     IDEM_VERDICT_ABSENT);
    memory_free(memory);
}

/* The canonical hash may still say that it is the same: also of an abandoned
 * key, which another request is not told of. */
static void
a_question_without_its_canonical_hash_is_asked_again(void **state)
{
    struct memory *memory = memory_new(1 << 20, 1000);
    struct memory_fact fact = make_fact(1);
    struct idem_fingerprint raw = fingerprint_of(2);
    struct memory_question question = {fact.digest, EPOCH, &raw, NOW_MS};

    (void)state;
    raw.version = 0;
    shared_answer_unref(fact.answer);
    fact.answer = NULL;
    fact.verdict = IDEM_VERDICT_ABANDONED;
    memory_keep(memory, &fact);
    assert_int_equal(memory_recall(memory, &question, &fact),
                     IDEM_VERDICT_REUSED);
    raw = fingerprint_of(1);
    raw.version = 0;
    assert_int_equal(memory_recall(memory, &question, &fact),
                     IDEM_VERDICT_ABANDONED);
    memory_free(memory);
}

/* Fault 41. */
static void
another_epoch_or_a_window_that_is_over_shows_nothing(void **state)
{
    struct memory *memory = memory_new(1 << 20, 1000);
    struct asked asked = {.number = 1, .request = 1, .epoch = "7:2:1"};

    (void)state;
    keep(memory, 1);
    assert_int_equal(ask(memory, asked), IDEM_VERDICT_ABSENT);
    asked = (struct asked){.number = 1, .request = 1, .wall_ms = NOW_MS + 1};
    assert_int_equal(ask(memory, asked), IDEM_VERDICT_ABSENT);
    assert_int_equal(recall(memory, 1), IDEM_VERDICT_DONE);
    memory_free(memory);
}

static void
what_is_kept_twice_is_there_once(void **state)
{
    struct memory *memory = memory_new(1 << 20, 1000);

    (void)state;
    keep(memory, 1);
    keep(memory, 1);
    assert_int_equal(recall(memory, 1), IDEM_VERDICT_DONE);
    assert_int_equal(count(memory).entries, 1);
    assert_int_equal(count(memory).evicted, 0);
    memory_free(memory);
}

static void
number_and_bytes_are_bounded(void **state)
{
    struct memory *few = memory_new(1 << 20, 160);
    struct memory *small = memory_new(64 << 10, 100000);

    (void)state;
    for (unsigned n = 0; n < 5000; n++) {
        keep(few, n);
        keep(small, n);
        assert_true(count(few).entries <= 160);
        assert_true(count(small).bytes <= 64 << 10);
    }
    assert_true(count(few).entries > 100);
    assert_true(count(small).bytes > 40 << 10);
    assert_int_equal(count(few).entries + count(few).evicted, 5000);
    assert_int_equal(count(small).entries + count(small).evicted, 5000);
    memory_free(few);
    memory_free(small);
}

/* Number 0 is asked for after each new one. */
static void
what_is_asked_for_stays_and_the_rest_goes(void **state)
{
    struct memory *memory = memory_new(1 << 20, SHARDS * 4);
    unsigned still = 0;

    (void)state;
    for (unsigned n = 0; n < 1000; n++) {
        keep(memory, n);
        assert_int_equal(recall(memory, 0), IDEM_VERDICT_DONE);
    }
    for (unsigned n = 1; n < 500; n++)
        still += recall(memory, n) == IDEM_VERDICT_DONE;
    assert_int_equal(still, 0);
    memory_free(memory);
}

static void
one_that_is_too_large_is_not_kept(void **state)
{
    struct memory *memory = memory_new((size_t)SHARDS * 600, 1000);
    static const uint8_t large[600];
    const struct idem_answer answer = {.reply = {large, sizeof(large)}};
    struct memory_fact fact = make_fact(2);

    (void)state;
    keep(memory, 1);
    shared_answer_unref(fact.answer);
    fact.answer = shared_answer_new(&answer);
    memory_keep(memory, &fact);
    shared_answer_unref(fact.answer);
    assert_int_equal(recall(memory, 1), IDEM_VERDICT_DONE);
    assert_int_equal(recall(memory, 2), IDEM_VERDICT_ABSENT);
    memory_free(memory);
}

#define ROUNDS 20000

static void *
keep_and_recall(void *with)
{
    struct memory *memory = with;

    for (unsigned n = 0; n < ROUNDS; n++) {
        keep(memory, n % 300);
        recall(memory, n * 7 % 300);
    }
    return NULL;
}

/* recall checks each answer. */
static void
threads_share_it(void **state)
{
    struct memory *memory = memory_new(1 << 20, 160);
    pthread_t threads[4];

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, keep_and_recall, memory), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(count(memory).entries <= 160);
    memory_free(memory);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_is_recalled_and_nothing_else),
        cmocka_unit_test(another_request_is_not_shown_the_answer),
        cmocka_unit_test(an_abandoned_key_has_no_answer_and_only_its_request),
        cmocka_unit_test(a_question_without_its_canonical_hash_is_asked_again),
        cmocka_unit_test(another_epoch_or_a_window_that_is_over_shows_nothing),
        cmocka_unit_test(what_is_kept_twice_is_there_once),
        cmocka_unit_test(number_and_bytes_are_bounded),
        cmocka_unit_test(what_is_asked_for_stays_and_the_rest_goes),
        cmocka_unit_test(one_that_is_too_large_is_not_kept),
        cmocka_unit_test(threads_share_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
