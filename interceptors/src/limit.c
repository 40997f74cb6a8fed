#include "limit.h"

#include <idem/reason.h>

#include <stdlib.h>

#define NS_PER_MS INT64_C(1000000)

/* --- Whose, and how much --- */

static struct idem_limit_policy
policy_of(const struct limit *limit, const struct idem_method *method)
{
    const struct idem_limit_policy *others = &limit->options.method;
    struct idem_limit_policy policy = method->limit;

    if (policy.max_in_flight == 0)
        policy.max_in_flight = others->max_in_flight;
    if (policy.max_waiting == 0)
        policy.max_waiting = others->max_waiting;
    if (policy.rate_calls == 0) {
        policy.rate_calls = others->rate_calls;
        policy.rate_per_ms = others->rate_per_ms;
        policy.rate_burst = others->rate_burst;
    }
    return policy;
}

/* The host of "tcp://10.0.0.7:51234": the next connection has another port. */
static struct idem_bytes
host_of(const struct idem_peer *peer)
{
    struct idem_bytes host = idem_bytes_of(peer ? peer->address : "");
    size_t size = host.size;

    while (size > 0 && host.data[size - 1] >= '0' && host.data[size - 1] <= '9')
        size--;
    if (size > 0 && host.data[size - 1] == ':')
        host.size = size - 1;
    return host;
}

static struct idem_bytes
principal_of(const struct idem_call *call)
{
    if (call->principal && call->principal->identity.size > 0)
        return call->principal->identity;
    return call->tenant.size > 0 ? call->tenant : host_of(call->peer);
}

/* Whoever holds no thread while it is under way needs none of the server's. */
static bool
needs_server(const struct idem_method *method)
{
    return method->mode != IDEM_MODE_NONE ||
           method->dispatch == IDEM_DISPATCH_POOL;
}

static int64_t
late_ns(const struct limit *limit, const struct idem_call *call)
{
    int64_t remaining_ns;

    if (limit->options.late_ms > 0)
        return limit->options.late_ms * NS_PER_MS;
    remaining_ns = idem_call_remaining_ns(call);
    return remaining_ns == INT64_MAX ? INT64_MAX : remaining_ns / 2;
}

static int64_t
now_ns(const struct limit *limit, const struct idem_call *call)
{
    return limit->options.adaptive ? call->clock->monotonic_ns(call->clock) : 0;
}

/* --- Permits --- */

enum permit_take
limit_take(struct limit *limit, const struct idem_call *call,
           struct permit *permit, bool wait)
{
    struct idem_limit_policy policy = policy_of(limit, call->method);
    struct permit_wish wish = {
        .method = call->method,
        .policy = &policy,
        .server = needs_server(call->method),
        .wait = wait,
        .now_ns = now_ns(limit, call),
    };

    if (limit->options.adaptive)
        permit->late_ns = late_ns(limit, call);
    return permits_take(&limit->permits, permit, &wish);
}

void
limit_take_over(struct limit *limit, const struct idem_call *call,
                struct permit *permit)
{
    struct idem_limit_policy policy = policy_of(limit, call->method);
    struct permit_wish wish = {
        .method = call->method,
        .policy = &policy,
        .server = needs_server(call->method),
        .now_ns = now_ns(limit, call),
    };

    permit->late_ns = INT64_MAX;
    permits_take_over(&limit->permits, permit, &wish);
}

void
limit_end(struct limit *limit, const struct idem_call *call,
          struct permit *permit)
{
    permits_end(&limit->permits, permit, now_ns(limit, call));
}

static void
ask_back(struct idem_call *call, int64_t after_ms)
{
    call->outcome.retry_after_ms = after_ms;
}

void
limit_shed(struct limit *limit, struct idem_call *call, enum idem_effect effect)
{
    int64_t after_ms = limit->options.retry_after_ms;

    atomic_fetch_add(&limit->shed, 1);
    idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, effect, IDEM_OVERLOADED,
                   "%u calls are under way, and as many wait as may",
                   atomic_load(&limit->permits.in_flight));
    /* Not all that are turned away together come back together. */
    ask_back(call, idem_clock_between(call->clock, after_ms - after_ms / 2,
                                      after_ms + after_ms / 2));
}

/* --- The hook --- */

/* A call that takes its permit here. */
struct turn {
    struct permit permit; /* first */
    struct limit *limit;
    struct idem_call *call;
    struct idem_timer timer; /* in whose thread the call goes on */
};

static void
go_on(struct idem_timer *timer)
{
    struct turn *turn =
        (struct turn *)((char *)timer - offsetof(struct turn, timer));

    if (permits_place(&turn->limit->permits, &turn->permit) == PERMIT_HELD) {
        idem_call_resume(turn->call, IDEM_NEXT);
        return;
    }
    idem_call_fail(turn->call, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED, NULL,
                   "the server is being stopped");
    idem_call_resume(turn->call, IDEM_ANSWER);
}

static void
called(struct permit *permit)
{
    struct turn *turn = (struct turn *)permit;

    idem_timer_start(turn->call->timers, &turn->timer, 0);
}

static bool
withdraw(struct idem_call *call, void *with)
{
    struct turn *turn = with;

    (void)call;
    return permits_withdraw(&turn->limit->permits, &turn->permit);
}

static const struct idem_holder in_line = {.withdraw = withdraw};

static enum idem_step
stand_in_line(struct turn *turn)
{
    struct idem_call *call = turn->call;

    if (!idem_call_keep(call, &in_line, turn))
        return IDEM_ANSWER;
    switch (limit_take(turn->limit, call, &turn->permit, true)) {
    case PERMIT_TAKEN:
        return IDEM_NEXT;
    case PERMIT_IN_LINE:
        return IDEM_WAIT;
    case PERMIT_NO_ROOM:
        break;
    }
    limit_shed(turn->limit, call, IDEM_EFFECT_REFUSED);
    return IDEM_ANSWER;
}

static enum idem_step
take_here(struct limit *limit, struct idem_call *call)
{
    struct turn *turn = idem_arena_zalloc(call->arena, sizeof(*turn));

    if (!turn) {
        idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED, NULL,
                       "no memory for the call");
        return IDEM_ANSWER;
    }
    turn->limit = limit;
    turn->call = call;
    turn->permit.called = called;
    turn->timer.fire = go_on;
    idem_call_set_state(call, &limit->base, turn);
    if (limit_take(limit, call, &turn->permit, false) == PERMIT_TAKEN)
        return IDEM_NEXT;
    return stand_in_line(turn);
}

/* Before anything is done for the call, or recorded (fault 53). */
static bool
is_too_often(struct limit *limit, struct idem_call *call)
{
    struct idem_limit_policy policy;
    int64_t over_ns;

    if (call->method->limit.rate_calls == 0 &&
        limit->options.method.rate_calls == 0)
        return false;
    policy = policy_of(limit, call->method);
    over_ns =
        rates_take(&limit->rates, call->method, &policy, principal_of(call),
                   call->clock->monotonic_ns(call->clock));
    if (over_ns == 0)
        return false;
    atomic_fetch_add(&limit->rate_limited, 1);
    idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED,
                   IDEM_RATE_LIMITED, "over %u calls of %s in %lld ms",
                   policy.rate_calls, call->method->name,
                   (long long)policy.rate_per_ms);
    ask_back(call, (over_ns + NS_PER_MS - 1) / NS_PER_MS);
    return true;
}

/* Where each message of a stream is a call, it is the messages that take. */
static bool
takes_here(const struct limit *limit, const struct idem_method *method)
{
    if (method->each)
        return false;
    return !limit->behind || method->mode == IDEM_MODE_NONE;
}

static bool
is_free(const struct limit *limit, const struct idem_method *method)
{
    return !needs_server(method) && method->limit.max_in_flight == 0 &&
           limit->options.method.max_in_flight == 0;
}

static enum idem_step
request(struct idem_interceptor *self, struct idem_call *call)
{
    struct limit *limit = (struct limit *)self;

    idem_call_set_state(call, self, NULL);
    if (is_too_often(limit, call))
        return IDEM_ANSWER;
    if (!takes_here(limit, call->method) || is_free(limit, call->method))
        return IDEM_NEXT;
    return take_here(limit, call);
}

static enum idem_step
reply(struct idem_interceptor *self, struct idem_call *call)
{
    struct limit *limit = (struct limit *)self;
    struct turn *turn = idem_call_state(call, self);

    if (turn)
        limit_end(limit, call, &turn->permit);
    return IDEM_NEXT;
}

static void
stop(struct idem_interceptor *self)
{
    permits_stop(&((struct limit *)self)->permits);
}

static void
limit_free(struct idem_interceptor *self)
{
    struct limit *limit = (struct limit *)self;

    permits_fini(&limit->permits);
    rates_fini(&limit->rates);
    free(limit);
}

const struct idem_interceptor_ops limit_ops = {
    .name = "limit",
    .band = IDEM_BAND_LIMIT,
    .request = request,
    .reply = reply,
    .stop = stop,
    .free = limit_free,
};
