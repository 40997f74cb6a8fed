#include "call.h"

#include "arena.h"
#include "blank.h"

#include <string.h>

static struct call *
call_of(const struct idem_call *base)
{
    return (struct call *)(uintptr_t)base; /* base is the first member */
}

enum idem_effect
call_effect_so_far(const struct call *call)
{
    if (call->sent)
        return IDEM_EFFECT_IN_DOUBT;
    return call->base.context ? IDEM_EFFECT_REFUSED : IDEM_EFFECT_NOT_SENT;
}

static void
forget_answer(struct call *call)
{
    blank_outcome(&call->base.outcome);
    /* Not OK before somebody says so: who turns round without an outcome must
     * not look like a success (case B043). */
    call->base.outcome.status = IDEM_UNKNOWN;
    call->base.waited_for = NULL;
    call->base.trailers = (struct idem_metadata){0};
    call->base.reply = (struct idem_bytes){0};
}

/* --- The walk --- */

static enum idem_step
send_down(struct call *call)
{
    enum idem_step step;

    call->attempts++;
    step = call->ops->send(call);

    return step == IDEM_NEXT ? IDEM_ANSWER : step;
}

/* So far: an interceptor on the way up may want to know. */
static void
note_attempts(struct call *call)
{
    call->base.outcome.attempts =
        call->attempts +
        atomic_load_explicit(&call->beside, memory_order_relaxed);
}

/* A turn has ended; whoever kept the call in it and did not wait lets go. */
static enum idem_step
end_turn(struct call *call, enum idem_step step)
{
    if (step == IDEM_WAIT)
        return call_after_wait(call);
    if (atomic_load_explicit(&call->hold, memory_order_relaxed) != CALL_LOOSE)
        call_let_go(call);
    return step;
}

/* Down from that place until one of those that have something to do for a
 * request does not say NEXT, the endpoint at the latest. */
static enum idem_step
go_down(struct call *call, unsigned from)
{
    const struct chain *chain = call->chain;
    enum idem_step step;

    do {
        unsigned at = chain->down[from];

        call->cursor = at;
        from = at + 1;
        if (call->reached < at)
            call->reached = at;
        if (at == chain->count)
            return end_turn(call, send_down(call));
        if (call->reached == at)
            call->reached = from;
        step = end_turn(
            call, chain->at[at]->ops->request(chain->at[at], &call->base));
    } while (step == IDEM_NEXT);
    return step;
}

/* Up from that place likewise; NEXT: past the top. */
static enum idem_step
go_up(struct call *call, unsigned from)
{
    const struct chain *chain = call->chain;
    enum idem_step step = IDEM_NEXT;

    while (step == IDEM_NEXT && chain->up[from] > call->top) {
        struct idem_interceptor *interceptor;

        from = chain->up[from] - 1;
        interceptor = chain->at[from];
        call->cursor = from;
        note_attempts(call);
        step =
            end_turn(call, interceptor->ops->reply(interceptor, &call->base));
    }
    return step;
}

static const struct idem_interceptor_ops *
ops_at_cursor(const struct call *call)
{
    return call->chain->at[call->cursor]->ops;
}

/* An interceptor says that the answer is there: believe it only when it is. */
static void
check_answer(struct call *call)
{
    const struct idem_outcome *outcome = &call->base.outcome;

    if (call->cursor == call->chain->count || outcome->status != IDEM_OK ||
        outcome->effect == IDEM_EFFECT_REPLAYED || call->base.reply.data)
        return;
    idem_call_fail(&call->base, IDEM_INTERNAL, call_effect_so_far(call), NULL,
                   "interceptor %s answered OK without a reply",
                   ops_at_cursor(call)->name);
}

/* Change direction if the step says so. */
static void
turn_round(struct call *call, enum idem_step step)
{
    if (call->up && step == IDEM_AGAIN) {
        forget_answer(call);
        call->sent = false;
        call->up = false;
    } else if (!call->up && step != IDEM_NEXT) {
        if (step == IDEM_AGAIN)
            idem_call_fail(&call->base, IDEM_INTERNAL, call_effect_so_far(call),
                           NULL, "%s answered AGAIN to a request",
                           call->cursor < call->chain->count
                               ? ops_at_cursor(call)->name
                               : "the endpoint");
        check_answer(call);
        call->up = true;
    }
}

void
call_disarm(struct call *call)
{
    if (call->armed && idem_timer_stop(call->base.timers, &call->deadline))
        call_unref(call);
    call->armed = false;
}

static void
finish(struct call *call)
{
    call_disarm(call);
    note_attempts(call);
    call_note_key(&call->base);
    if (call->parent) {
        atomic_fetch_add(&call->parent->beside, call->base.outcome.attempts);
        call->done(&call->base, call->done_with);
    } else {
        call->ops->finish(call);
    }
}

bool
call_walk(struct call *call, enum idem_step step)
{
    while (step != IDEM_WAIT) {
        turn_round(call, step);
        if (!call->up) {
            step = go_down(call, call->cursor + 1);
            continue;
        }
        step = go_up(call, call->cursor);
        if (step == IDEM_NEXT) {
            finish(call);
            return true;
        }
    }
    return false;
}

static void
drop(struct call *call, unsigned references)
{
    struct call *parent;

    if (atomic_fetch_sub_explicit(&call->refs, references,
                                  memory_order_acq_rel) != references)
        return;
    parent = call->parent;
    call->ops->free(call);
    if (parent)
        call_unref(parent);
}

/* Its thread's reference, and the walk's when that is over. */
static void
walk_and_drop(struct call *call, enum idem_step step)
{
    drop(call, call_walk(call, step) ? 2 : 1);
}

void
idem_call_resume(struct idem_call *base, enum idem_step step)
{
    struct call *call = call_of(base);

    IDEM_ASSERT(step != IDEM_WAIT);
    call_ref(call);
    call_let_go(call);
    walk_and_drop(call, step);
}

static void
fire_deadline(struct idem_timer *timer)
{
    struct call *call =
        (struct call *)((char *)timer - offsetof(struct call, deadline));

    call_interrupt(call, IDEM_DEADLINE_EXCEEDED);
    call_unref(call);
}

void
call_arm(struct call *call)
{
    if (call->armed || call->end_ns == INT64_MAX)
        return;
    call_ref(call);
    call->armed = true;
    call->deadline.fire = fire_deadline;
    idem_timer_start(call->base.timers, &call->deadline, call->end_ns);
}

void
idem_call_lower_deadline(struct idem_call *base, int64_t deadline_ns)
{
    struct call *call = call_of(base);

    if (deadline_ns >= base->deadline_ns)
        return;
    base->deadline_ns = deadline_ns;
    if (deadline_ns >= call->end_ns)
        return;
    call->end_ns = deadline_ns;
    if (call->armed && idem_timer_stop(base->timers, &call->deadline))
        idem_timer_start(base->timers, &call->deadline, deadline_ns);
}

void
call_begin_with(struct call *call)
{
    call->end_ns = call->base.deadline_ns;
    walk_and_drop(call, go_down(call, call->top));
}

void
call_begin(struct call *call)
{
    call_begin_until(call, call->base.deadline_ns);
}

void
call_begin_until(struct call *call, int64_t end_ns)
{
    call->end_ns = end_ns;
    call_ref(call);
    walk_and_drop(call, go_down(call, call->top));
}

void
call_arm_again(struct call *call)
{
    call->end_ns = call->base.deadline_ns;
    call_arm(call);
}

/* --- Its life --- */

void
call_init(struct call *call, const struct call_ops *ops,
          const struct chain *chain, struct idem_arena *arena)
{
    /* Around the outcome, whose texts are long. */
    memset(call, 0, offsetof(struct call, base.outcome));
    memset(&call->base.trailers, 0,
           sizeof(*call) - offsetof(struct call, base.trailers));
    call->state = idem_arena_zalloc(arena, chain->count * sizeof(*call->state));
    IDEM_ASSERT(call->state);
    call->ops = ops;
    call->chain = chain;
    call->base.arena = arena;
    call->base.attempt = 1;
    call->base.deadline_ns = INT64_MAX;
    atomic_init(&call->refs, 1);
    atomic_init(&call->interrupt, IDEM_OK);
    atomic_init(&call->hold, CALL_LOOSE);
    call->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    forget_answer(call);
}

void
call_fini(struct call *call)
{
    for (unsigned i = call->reached; i > call->top; i--) {
        struct idem_interceptor *interceptor = call->chain->at[i - 1];

        if (interceptor->ops->forget)
            interceptor->ops->forget(interceptor, &call->base);
    }
    pthread_mutex_destroy(&call->lock);
    arena_free(call->base.arena);
}

void
call_ref(struct call *call)
{
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
}

void
call_ref_unseen(struct call *call, unsigned references)
{
    unsigned refs = atomic_load_explicit(&call->refs, memory_order_relaxed);

    atomic_store_explicit(&call->refs, refs + references, memory_order_relaxed);
}

void
call_unref(struct call *call)
{
    drop(call, 1);
}
