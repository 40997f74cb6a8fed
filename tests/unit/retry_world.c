#include "support.h"

#include "arena.h"
#include "retry_world.h"
#include "timer.h"

#include <idem/key.h>
#include <idem/retry.h>

#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define HORIZON_NS (INT64_MAX - 1)

static struct retry_call *
retry_call_of(struct call *call)
{
    return (struct retry_call *)call;
}

static void
note(struct retry_call *call)
{
    const struct idem_call *base = &call->call.base;
    unsigned n = call->sends;

    if (n < RETRY_SENDS_MAX) {
        call->attempts[n] = base->attempt;
        call->sent_at_ns[n] = retry_world_now_ns(call->world);
        if (base->key.size > 0)
            memcpy(call->keys[n], base->key.data, base->key.size);
    }
    call->sends++;
}

static enum idem_step
send_attempt(struct call *base)
{
    static const uint8_t reply[1];
    struct retry_call *call = retry_call_of(base);

    note(call);
    idem_call_fail(&base->base, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT, NULL,
                   "attempt %u", call->sends);
    call->answer(call, call->sends);
    base->sent = base->base.outcome.effect != IDEM_EFFECT_NOT_SENT;
    if (base->base.outcome.status == IDEM_OK)
        base->base.reply = (struct idem_bytes){reply, 1};
    return IDEM_ANSWER;
}

static void
finish(struct call *base)
{
    struct retry_call *call = retry_call_of(base);

    pthread_mutex_lock(&call->world->lock);
    call->finishes++;
    call->outcome = base->base.outcome;
    call->trailers = base->base.trailers.first != NULL;
    pthread_mutex_unlock(&call->world->lock);
}

static void
free_call(struct call *base)
{
    struct retry_call *call = retry_call_of(base);

    call_fini(base);
    call->freed = true;
}

static const struct call_ops ops = {
    .send = send_attempt,
    .finish = finish,
    .free = free_call,
};

static void
never(struct idem_timer *timer)
{
    (void)timer;
    fail_msg("the end of time");
}

/* The timers' thread has done all that is due and waits for that time, or for
 * an earlier one. While it works it waits for nothing. */
static void
settle(struct retry_world *w, int64_t at_ns)
{
    fake_clock_await_waiter(&w->fake, at_ns);
}

void
retry_world_open(struct retry_world *w)
{
    memset(w, 0, sizeof(*w));
    fake_clock_init(&w->fake);
    w->timers = timers_new(&w->fake.clock);
    assert_non_null(w->timers);
    assert_int_equal(chain_add(&w->chain, idem_key_interceptor_new(), NULL),
                     IDEM_OK);
    assert_int_equal(chain_add(&w->chain, idem_retry_new(), NULL), IDEM_OK);
    chain_seal(&w->chain);
    pthread_mutex_init(&w->lock, NULL);
    w->horizon.fire = never;
    idem_timer_start(w->timers, &w->horizon, HORIZON_NS);
    settle(w, HORIZON_NS);
}

void
retry_world_close(struct retry_world *w)
{
    timers_free(w->timers);
    chain_free(&w->chain);
    fake_clock_fini(&w->fake);
    pthread_mutex_destroy(&w->lock);
}

int64_t
retry_world_now_ns(struct retry_world *w)
{
    return w->fake.clock.monotonic_ns(&w->fake.clock);
}

struct retry_call *
retry_call_new(struct retry_world *w, retry_answer_fn *answer,
               unsigned max_attempts, uint32_t retryable, int64_t timeout_ms)
{
    struct retry_call *call = calloc(1, sizeof(*call));

    assert_non_null(call);
    call->world = w;
    call->answer = answer;
    call->method = (struct idem_method){
        .name = "test.v1.Test/Call",
        .mode = IDEM_MODE_TRANSACTION,
        .key_source = IDEM_KEY_MINTED,
        .key_required = true,
        .window_ms = 86400000,
        .retry = {max_attempts, 100, 2000, 2000, retryable},
    };
    call_init(&call->call, &ops, &w->chain, arena_new(1024, 0));
    call->call.base.method = &call->method;
    call->call.base.clock = &w->fake.clock;
    call->call.base.timers = w->timers;
    if (timeout_ms > 0)
        call->call.base.deadline_ns = retry_world_now_ns(w) + timeout_ms * MS;
    return call;
}

bool
retry_call_finished(struct retry_call *call)
{
    bool finished;

    pthread_mutex_lock(&call->world->lock);
    finished = call->finishes > 0;
    pthread_mutex_unlock(&call->world->lock);
    return finished;
}

void
retry_call_begin(struct retry_call *call)
{
    call_ref(&call->call); /* the test's own */
    call_begin(&call->call);
    if (!retry_call_finished(call))
        settle(call->world, call->call.nap.at_ns);
}

void
retry_world_advance_ns(struct retry_world *w, int64_t ns)
{
    fake_clock_advance_ns(&w->fake, ns);
    settle(w, HORIZON_NS);
}

void
retry_call_pass_pause(struct retry_call *call)
{
    assert_false(retry_call_finished(call));
    retry_world_advance_ns(call->world, call->call.nap.at_ns -
                                            retry_world_now_ns(call->world));
}

void
retry_call_free(struct retry_call *call)
{
    assert_int_equal(call->finishes, 1);
    call_unref(&call->call);
    assert_true(call->freed);
    free(call);
}
