#include "retry_story.h"

static struct fake_clock fake;

int
story_set_up(void **state)
{
    (void)state;
    fake_clock_init(&fake);
    return 0;
}

int
story_tear_down(void **state)
{
    (void)state;
    fake_clock_fini(&fake);
    return 0;
}

void
story_begin(struct story *story, unsigned max_attempts, uint32_t retryable)
{
    *story = (struct story){
        .method = {.retry = {.max_attempts = max_attempts,
                             .initial_backoff_ms = 100,
                             .max_backoff_ms = 2000,
                             .backoff_multiplier_milli = 2000,
                             .retryable = retryable}},
    };
    story->question = (struct retry_question){
        .policy = &story->method.retry,
        .outcome = &story->outcome,
        .keyed = true,
        .safe = true,
        .remaining_ns = INT64_MAX,
        .clock = &fake.clock,
    };
}

struct retry_answer
story_end(struct story *story, enum idem_status status, enum idem_effect effect)
{
    story->outcome.status = status;
    story->outcome.effect = effect;
    story->outcome.retry_after_ms = -1;
    return retry_next(&story->progress, &story->question);
}

struct retry_answer
story_end_later(struct story *story, enum idem_status status,
                enum idem_effect effect, int64_t retry_after_ms)
{
    story->outcome.status = status;
    story->outcome.effect = effect;
    story->outcome.retry_after_ms = retry_after_ms;
    return retry_next(&story->progress, &story->question);
}

void
assert_stop(struct retry_answer answer, enum idem_stop stop)
{
    assert_false(answer.go);
    assert_int_equal(answer.stop, stop);
}

void
assert_pause_around(struct retry_answer answer, int64_t ms)
{
    assert_true(answer.go);
    assert_in_range(answer.pause_ns, ms * MS * 8 / 10, ms * MS * 12 / 10);
}
