#include "call.h"

#include "arena.h"

#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

static struct call *
call_of(const struct idem_call *base)
{
    return (struct call *)(uintptr_t)base; /* base is the first member */
}

static enum idem_status
interrupt_of(const struct call *call)
{
    return (enum idem_status)atomic_load_explicit(&call->interrupt,
                                                  memory_order_acquire);
}

/* What a call that goes up from the request side has done. */
static enum idem_effect
effect_so_far(const struct call *call)
{
    if (call->sent)
        return IDEM_EFFECT_IN_DOUBT;
    return call->base.context ? IDEM_EFFECT_REFUSED : IDEM_EFFECT_NOT_SENT;
}

static void
forget_answer(struct call *call)
{
    /* Not OK before somebody says so: who turns round without an outcome must
     * not look like a success (case B043). */
    call->base.outcome = (struct idem_outcome){
        .status = IDEM_UNKNOWN,
        .effect = IDEM_EFFECT_NOT_SENT,
        .retry_after_ms = -1,
    };
    call->base.trailers = (struct idem_metadata){0};
    call->base.reply = (struct idem_bytes){0};
}

/* --- Interruption --- */

static const char *
interrupt_text(const struct call *call, enum idem_status status)
{
    if (status == IDEM_CANCELLED)
        return "the caller gave the call up";
    if (status == IDEM_DEADLINE_EXCEEDED)
        return call->parent ? "the time of the attempt is over"
                            : "the deadline is over";
    if (call->parent)
        return "another attempt was answered";
    return "the library is being stopped";
}

static enum idem_step
answer_interrupted(struct call *call)
{
    enum idem_status status = interrupt_of(call);
    struct idem_outcome *outcome = &call->base.outcome;

    if (!call->up) {
        /* A hook that waits for another call with its key said so before. */
        enum idem_effect effect = outcome->effect == IDEM_EFFECT_IN_DOUBT
                                      ? IDEM_EFFECT_IN_DOUBT
                                      : effect_so_far(call);

        bool timed_out = call->parent && status == IDEM_DEADLINE_EXCEEDED;

        idem_call_fail(&call->base, status, effect,
                       timed_out ? IDEM_ATTEMPT_TIMEOUT : NULL, "%s",
                       interrupt_text(call, status));
        return IDEM_ANSWER;
    }
    if (outcome->status != IDEM_OK) {
        outcome->status = status;
        outcome->reason[0] = 0;
        snprintf(outcome->message, sizeof(outcome->message), "%s",
                 interrupt_text(call, status));
        call->base.trailers = (struct idem_metadata){0}; /* of another end */
    }
    return IDEM_NEXT;
}

/* With the lock: try to get the call back from its holder. */
static bool
take_back(struct call *call)
{
    if (!call->kept || !call->holder ||
        !call->holder->withdraw(&call->base, call->with))
        return false;
    call->kept = false;
    return true;
}

static void
let_go(struct call *call)
{
    pthread_mutex_lock(&call->lock);
    call->kept = false;
    pthread_mutex_unlock(&call->lock);
}

/* A hook has returned IDEM_WAIT. An interruption between its keep and its
 * putting the call away found nothing to withdraw; look again. The walk's
 * second reference makes that safe although the call may be far away by now. */
static enum idem_step
after_wait(struct call *call)
{
    if (interrupt_of(call) == IDEM_OK)
        return IDEM_WAIT;
    pthread_mutex_lock(&call->lock);

    bool mine = take_back(call);

    pthread_mutex_unlock(&call->lock);
    return mine ? answer_interrupted(call) : IDEM_WAIT;
}

/* --- The walk --- */

static const struct idem_interceptor_ops *
ops_at_cursor(const struct call *call)
{
    return call->chain->at[call->cursor]->ops;
}

static enum idem_step
send_down(struct call *call)
{
    atomic_fetch_add_explicit(&call->attempts, 1, memory_order_relaxed);

    enum idem_step step = call->ops->send(call);

    return step == IDEM_NEXT ? IDEM_ANSWER : step;
}

/* So far: an interceptor on the way up may want to know. */
static void
note_attempts(struct call *call)
{
    call->base.outcome.attempts =
        atomic_load_explicit(&call->attempts, memory_order_relaxed);
}

static enum idem_step
take_turn(struct call *call)
{
    if (!call->up && call->cursor == call->chain->count)
        return send_down(call);

    struct idem_interceptor *interceptor = call->chain->at[call->cursor];

    if (!call->up && call->reached <= call->cursor)
        call->reached = call->cursor + 1;

    if (call->up)
        note_attempts(call);

    idem_intercept_fn *hook =
        call->up ? interceptor->ops->reply : interceptor->ops->request;

    return hook ? hook(interceptor, &call->base) : IDEM_NEXT;
}

/* An interceptor says that the answer is there: believe it only when it is. */
static void
check_answer(struct call *call)
{
    const struct idem_outcome *outcome = &call->base.outcome;

    if (call->cursor == call->chain->count || outcome->status != IDEM_OK ||
        outcome->effect == IDEM_EFFECT_REPLAYED || call->base.reply.data)
        return;
    idem_call_fail(&call->base, IDEM_INTERNAL, effect_so_far(call), NULL,
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
            idem_call_fail(&call->base, IDEM_INTERNAL, effect_so_far(call),
                           NULL, "%s answered AGAIN to a request",
                           call->cursor < call->chain->count
                               ? ops_at_cursor(call)->name
                               : "the endpoint");
        check_answer(call);
        call->up = true;
    }
}

/* One place on in the call's direction. False: past the top. */
static bool
step_along(struct call *call)
{
    if (!call->up) {
        call->cursor++;
        return true;
    }
    if (call->cursor == call->top)
        return false;
    call->cursor--;
    return true;
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
        atomic_fetch_add(&call->parent->attempts, call->base.outcome.attempts);
        call->done(&call->base, call->done_with);
    } else {
        call->ops->finish(call);
    }
    call_unref(call);
}

/* Move the call along its chain until somebody keeps it or it is answered. From
 * here to the end of the walk the call is not ours once a turn has said WAIT;
 * only our reference is. */
static void
walk(struct call *call, enum idem_step step)
{
    while (step != IDEM_WAIT) {
        if (call->kept)
            let_go(call);
        turn_round(call, step);
        if (!step_along(call)) {
            finish(call);
            return;
        }
        step = take_turn(call);
        if (step == IDEM_WAIT)
            step = after_wait(call);
    }
}

void
idem_call_resume(struct idem_call *base, enum idem_step step)
{
    struct call *call = call_of(base);

    IDEM_ASSERT(step != IDEM_WAIT);
    call_ref(call);
    let_go(call);
    walk(call, step);
    call_unref(call);
}

static void
fire_deadline(struct idem_timer *timer)
{
    struct call *call =
        (struct call *)((char *)timer - offsetof(struct call, deadline));

    call_interrupt(call, IDEM_DEADLINE_EXCEEDED);
    call_unref(call);
}

static void
arm_deadline(struct call *call, int64_t end_ns)
{
    if (end_ns == INT64_MAX)
        return;
    call_ref(call);
    call->armed = true;
    call->deadline.fire = fire_deadline;
    idem_timer_start(call->base.timers, &call->deadline, end_ns);
}

void
idem_call_lower_deadline(struct idem_call *base, int64_t deadline_ns)
{
    struct call *call = call_of(base);

    if (deadline_ns >= base->deadline_ns)
        return;
    base->deadline_ns = deadline_ns;
    if (!call->armed)
        arm_deadline(call, deadline_ns);
    else if (idem_timer_stop(base->timers, &call->deadline))
        idem_timer_start(base->timers, &call->deadline, deadline_ns);
}

void
call_begin(struct call *call)
{
    call_begin_until(call, call->base.deadline_ns);
}

void
call_begin_until(struct call *call, int64_t end_ns)
{
    call_ref(call);
    arm_deadline(call, end_ns);

    enum idem_step step = take_turn(call);

    walk(call, step == IDEM_WAIT ? after_wait(call) : step);
    call_unref(call);
}

void
call_arm_again(struct call *call)
{
    arm_deadline(call, call->base.deadline_ns);
}

void
call_interrupt(struct call *call, enum idem_status status)
{
    pthread_mutex_lock(&call->lock);

    bool mine = false, first = interrupt_of(call) == IDEM_OK;

    if (first) {
        atomic_store_explicit(&call->interrupt, status, memory_order_release);
        mine = take_back(call);
    }
    pthread_mutex_unlock(&call->lock);
    if (mine)
        walk(call, answer_interrupted(call));
    else if (first && call->ops->interrupted)
        call->ops->interrupted(call);
}

bool
idem_call_keep(struct idem_call *base, const struct idem_holder *holder,
               void *with)
{
    struct call *call = call_of(base);

    pthread_mutex_lock(&call->lock);

    bool granted = !holder || interrupt_of(call) == IDEM_OK;

    if (granted) {
        call->kept = true;
        call->holder = holder;
        call->with = with;
    }
    pthread_mutex_unlock(&call->lock);
    if (!granted)
        answer_interrupted(call);
    return granted;
}

/* --- The nap --- */

static void
fire_nap(struct idem_timer *timer)
{
    struct call *call =
        (struct call *)((char *)timer - offsetof(struct call, nap));

    idem_call_resume(&call->base, call->after_nap);
}

static bool
withdraw_nap(struct idem_call *base, void *with)
{
    struct call *call = with;

    return idem_timer_stop(base->timers, &call->nap);
}

bool
idem_call_sleep(struct idem_call *base, int64_t delay_ns, enum idem_step step)
{
    static const struct idem_holder nap_holder = {
        .withdraw = withdraw_nap,
    };
    struct call *call = call_of(base);
    int64_t now_ns = base->clock->monotonic_ns(base->clock);
    int64_t at_ns = INT64_MAX;

    if (delay_ns <= INT64_MAX - now_ns)
        at_ns = now_ns + delay_ns;
    call->nap.fire = fire_nap;
    call->after_nap = step;
    if (!idem_call_keep(base, &nap_holder, call))
        return false;
    idem_timer_start(base->timers, &call->nap, at_ns);
    return true;
}

/* --- Its life --- */

void
call_init(struct call *call, const struct call_ops *ops,
          const struct chain *chain, struct idem_arena *arena)
{
    memset(call, 0, sizeof(*call));
    call->ops = ops;
    call->chain = chain;
    call->base.arena = arena;
    call->base.attempt = 1;
    call->base.deadline_ns = INT64_MAX;
    atomic_init(&call->refs, 1);
    atomic_init(&call->interrupt, IDEM_OK);
    pthread_mutex_init(&call->lock, NULL);
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
call_unref(struct call *call)
{
    struct call *parent;

    if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) != 1)
        return;
    parent = call->parent;
    call->ops->free(call);
    if (parent)
        call_unref(parent);
}
