#include "attempts.h"

#include <idem/attempt.h>

#include <string.h>

#define NS_PER_MS 1000000

/* Threads: the call's until the first attempt is started; then any, with the
 * lock. What the plan wants is done without it. The call is resumed by whoever
 * sees that nothing is under way any more: no attempt, no timer.
 *
 * Locks: the call's, then this, then the timers'. */
struct attempts {
    struct idem_call *call; /* its memory is the arena's */
    const struct idem_interceptor *interceptor;
    int64_t timeout_ns;
    struct idem_timer due, nudge;

    pthread_mutex_t lock; /* guards the rest */
    struct plan plan;
    unsigned at_once;          /* that fly beside one another, at most */
    struct idem_call **flying; /* so many places; a reference each */
    struct idem_call **late;   /* as many: those that fly when it is over */
    struct idem_call *answer;  /* of the call, so far; a reference */
    const char *waited_for;    /* the last that was given up; in the call's
                                * arena; NULL: nothing */
    bool due_set, nudge_set;   /* the timer has not fired */
    bool resumed;
};

static int64_t
now_of(const struct attempts *self)
{
    const struct idem_clock *clock = self->call->clock;

    return clock->monotonic_ns(clock);
}

/* --- The end --- */

static void
copy_trailers(struct idem_call *call, const struct idem_call *attempt)
{
    const struct idem_metadata_entry *entry;

    for (entry = attempt->trailers.first; entry; entry = entry->next)
        if (idem_metadata_add(&call->trailers, call->arena, entry->name,
                              entry->value, NULL) != IDEM_OK)
            continue; /* beside the answer, not part of it */
}

static void
copy_reply(struct idem_call *call, const struct idem_call *attempt)
{
    const uint8_t *copy = idem_arena_copy(call->arena, attempt->reply);

    if (copy)
        call->reply = (struct idem_bytes){copy, attempt->reply.size};
    else
        idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, call->outcome.effect,
                       NULL, "no memory for a reply of %zu bytes",
                       attempt->reply.size);
}

static void
say_given_up(struct idem_call *call, const char *waited_for)
{
    enum idem_status status = idem_call_interrupted_by(call);
    const char *why = "the library is being stopped";

    if (status == IDEM_CANCELLED)
        why = "the caller gave the call up";
    else if (status == IDEM_DEADLINE_EXCEEDED)
        why = "the deadline is over";
    idem_call_fail(call, status, IDEM_EFFECT_NOT_SENT, NULL, "%s%s%s", why,
                   waited_for ? "; " : "", waited_for ? waited_for : "");
}

/* The answer's outcome and what belongs to it; the effect is over all. */
static void
answer_call(struct attempts *self)
{
    struct idem_call *call = self->call, *answer = self->answer;

    if (answer)
        call->outcome = answer->outcome;
    else
        idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_NOT_SENT,
                       NULL, "no memory for an attempt");
    if (self->plan.stop == IDEM_STOP_INTERRUPTED)
        say_given_up(call, self->waited_for);
    call->outcome.effect = self->plan.progress.worst;
    retry_say_stop(&call->outcome, self->plan.stop);
    if (answer && self->plan.stop != IDEM_STOP_INTERRUPTED)
        copy_trailers(call, answer);
    if (call->outcome.status == IDEM_OK)
        copy_reply(call, answer);
}

static void
resume(struct attempts *self)
{
    struct idem_call *call = self->call;

    answer_call(self);
    if (self->answer)
        idem_attempt_release(self->answer);
    idem_call_resume(call, IDEM_ANSWER);
}

/* With the lock. True, once: nothing is under way. */
static bool
is_last(struct attempts *self)
{
    bool last = self->plan.over && self->plan.flying == 0 && !self->due_set &&
                !self->nudge_set && !self->resumed;

    self->resumed |= last;
    return last;
}

/* --- What the plan wants --- */

static void done(struct idem_call *attempt, void *with);
static void go_on(struct attempts *self, struct plan_step step, bool was_over);

/* With the lock: the timer is set for what is planned. */
static void
set_due(struct attempts *self)
{
    struct idem_timers *timers = self->call->timers;

    if (self->due_set && idem_timer_stop(timers, &self->due))
        self->due_set = false;
    if (self->due_set || self->plan.due_ns == INT64_MAX)
        return; /* it is about to fire, and looks at the plan again */
    self->due_set = true;
    idem_timer_start(timers, &self->due, self->plan.due_ns);
}

/* With the lock. */
static void
put(struct attempts *self, struct idem_call *attempt)
{
    unsigned place = 0;

    while (place < self->at_once && self->flying[place])
        place++;
    IDEM_ASSERT(place < self->at_once);
    self->flying[place] = attempt;
}

/* With the lock; its reference is the taker's. */
static void
take(struct attempts *self, const struct idem_call *attempt)
{
    unsigned place = 0;

    while (self->flying[place] != attempt)
        place++;
    self->flying[place] = NULL;
}

static void
start(struct attempts *self, unsigned number)
{
    const struct idem_outcome no_memory = {
        .status = IDEM_RESOURCE_EXHAUSTED,
        .effect = IDEM_EFFECT_NOT_SENT,
        .retry_after_ms = -1,
    };
    struct idem_call *attempt =
        idem_attempt_new(self->call, self->interceptor, number, done, self);
    int64_t timeout_ns = self->timeout_ns;

    pthread_mutex_lock(&self->lock);
    if (!attempt) {
        bool was_over = self->plan.over;

        go_on(self, plan_ended(&self->plan, &no_memory, now_of(self)),
              was_over);
        return;
    }
    put(self, attempt);
    if (self->plan.over)
        idem_attempt_drop(attempt, IDEM_ABORTED); /* it is not sent yet */
    pthread_mutex_unlock(&self->lock);
    idem_attempt_start(attempt, timeout_ns);
}

/* With the lock, once, when it is over: those that fly, each with a reference
 * more. */
static unsigned
list_late(struct attempts *self)
{
    unsigned count = 0;

    for (unsigned i = 0; i < self->at_once; i++)
        if (self->flying[i]) {
            idem_attempt_retain(self->flying[i]);
            self->late[count++] = self->flying[i];
        }
    return count;
}

/* They are not wanted any more. Each may end inside, and with the last one the
 * call. */
static void
drop(const struct idem_call *call, struct idem_call *const *list,
     unsigned count)
{
    bool cancelled = idem_call_interrupted_by(call) == IDEM_CANCELLED;

    for (unsigned i = 0; i < count; i++)
        idem_attempt_drop(list[i], cancelled ? IDEM_CANCELLED : IDEM_ABORTED);
    for (unsigned i = 0; i < count; i++)
        idem_attempt_release(list[i]);
}

/* After an event, with the lock, which it gives back. */
static void
go_on(struct attempts *self, struct plan_step step, bool was_over)
{
    struct idem_call *call = self->call;
    unsigned count = 0;
    bool last;

    set_due(self);
    if (self->plan.over && !was_over)
        count = list_late(self);
    last = is_last(self);
    pthread_mutex_unlock(&self->lock);
    if (last)
        resume(self);
    else if (step.start)
        start(self, step.number);
    else if (count > 0)
        drop(call, self->late, count);
}

/* --- Events --- */

/* With the lock. */
static void
note_waited_for(struct attempts *self, const struct idem_call *attempt)
{
    if (attempt->waited_for)
        self->waited_for =
            idem_arena_printf(self->call->arena, "%s", attempt->waited_for);
}

static void
done(struct idem_call *attempt, void *with)
{
    struct attempts *self = with;
    struct idem_call *released = attempt;
    struct plan_step step;
    bool was_over;

    pthread_mutex_lock(&self->lock);
    take(self, attempt);
    note_waited_for(self, attempt);
    was_over = self->plan.over;
    step = plan_ended(&self->plan, &attempt->outcome, now_of(self));
    if (step.choose) {
        released = self->answer;
        self->answer = attempt;
    }
    go_on(self, step, was_over);
    if (released)
        idem_attempt_release(released);
}

static void
fire_due(struct idem_timer *timer)
{
    struct attempts *self =
        (struct attempts *)((char *)timer - offsetof(struct attempts, due));
    bool was_over;

    pthread_mutex_lock(&self->lock);
    self->due_set = false;
    was_over = self->plan.over;
    go_on(self, plan_due(&self->plan, now_of(self)), was_over);
}

static void
fire_nudge(struct idem_timer *timer)
{
    struct attempts *self =
        (struct attempts *)((char *)timer - offsetof(struct attempts, nudge));
    bool was_over;

    pthread_mutex_lock(&self->lock);
    self->nudge_set = false;
    was_over = self->plan.over;
    plan_give_up(&self->plan);
    go_on(self, (struct plan_step){.start = false}, was_over);
}

/* The attempts are given up by the timers' thread, since nothing of them may
 * run under the call's lock; the call is resumed when they are over. */
static bool
withdraw(struct idem_call *call, void *with)
{
    struct attempts *self = with;

    pthread_mutex_lock(&self->lock);
    if (!self->plan.over && !self->nudge_set) {
        self->nudge_set = true;
        idem_timer_start(call->timers, &self->nudge, 0);
    }
    pthread_mutex_unlock(&self->lock);
    return false;
}

static const struct idem_holder holder = {.withdraw = withdraw};

/* Hedges, and one that cost nothing beside them. */
static void
make_room(struct attempts *self, struct idem_arena *arena)
{
    const struct hedging *hedging = self->plan.rules.hedging;

    self->at_once = hedging->max_attempts + 2;
    self->flying =
        idem_arena_zalloc(arena, self->at_once * sizeof(*self->flying));
    self->late = idem_arena_zalloc(arena, self->at_once * sizeof(*self->late));
    IDEM_ASSERT(self->flying && self->late);
}

enum idem_step
attempts_begin(struct attempts **out, struct idem_call *call,
               const struct idem_interceptor *interceptor,
               const struct plan_rules *rules, int64_t timeout_ms)
{
    struct attempts *self = idem_arena_zalloc(call->arena, sizeof *self);

    IDEM_ASSERT(self);
    self->call = call;
    self->interceptor = interceptor;
    self->timeout_ns = timeout_ms > 0 && timeout_ms < INT64_MAX / NS_PER_MS
                           ? timeout_ms * NS_PER_MS
                           : INT64_MAX;
    self->due.fire = fire_due;
    self->nudge.fire = fire_nudge;
    pthread_mutex_init(&self->lock, NULL);
    plan_begin(&self->plan, rules, now_of(self));
    make_room(self, call->arena);
    *out = self;
    if (!idem_call_keep(call, &holder, self))
        return IDEM_ANSWER;
    pthread_mutex_lock(&self->lock);
    go_on(self, (struct plan_step){.start = true, .number = 1}, false);
    return IDEM_WAIT;
}

enum idem_effect
attempts_effect(const struct attempts *self)
{
    return self->plan.progress.worst;
}

void
attempts_fini(struct attempts *self)
{
    if (self)
        pthread_mutex_destroy(&self->lock);
}
