#include "limit_world.h"

struct idem_limit_counts
limit_counts(const struct world *world)
{
    struct idem_limit_counts now;

    idem_limit_counts(world->limit, &now);
    return now;
}

void
begin_add(struct trial *trial, struct world *world, const char *key)
{
    const struct trial_options options = {.key = key, .amount = 7};

    trial_begin(trial, world, &options);
}

void
trial_interrupt(struct trial *trial)
{
    call_ref(&trial->call);
    call_interrupt(&trial->call, IDEM_CANCELLED);
    call_unref(&trial->call);
}

void
assert_shed(struct trial *trial)
{
    trial_await(trial);
    assert_int_equal(trial->begun, 0);
    assert_int_equal(trial->outcome.status, IDEM_RESOURCE_EXHAUSTED);
    assert_int_equal(trial->outcome.effect, IDEM_EFFECT_REFUSED);
    assert_false(trial->outcome.final);
    assert_string_equal(trial->outcome.reason, IDEM_OVERLOADED);
    assert_in_range(trial->outcome.retry_after_ms, 50, 150);
}

void
limit_to(struct world *world, unsigned max_in_flight, unsigned max_waiting)
{
    const struct idem_limit_options options = {.max_in_flight = max_in_flight,
                                               .max_waiting = max_waiting};

    world_use_limit(world, &options);
}
