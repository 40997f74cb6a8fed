#include "call.h"

#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

/* Who keeps a call, how it is taken back from him, and the simplest keeper: a
 * nap. The walk is call.c's.
 *
 *               keep    let go   interrupt   withdrawn   not there
 *   LOOSE       KEPT    -        -           -           -
 *   KEPT        KEPT    LOOSE    TAKING      -           -
 *   TAKING      waits   waits    -           LOOSE       KEPT
 *
 * Keeping and letting go take no lock, for every call does both. Interruptions
 * are rare: they have the call's lock as long as it is TAKING, which is how the
 * others wait for them. */

static struct call *
call_of(const struct idem_call *base)
{
    return (struct call *)(uintptr_t)base; /* base is the first member */
}

static enum idem_status
interrupt_of(const struct call *call)
{
    return (enum idem_status)atomic_load(&call->interrupt);
}

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

/* On the request side. */
static void
fail_interrupted(struct call *call, enum idem_status status)
{
    /* A hook that waits for another call with its key said so before. */
    enum idem_effect effect = call->base.outcome.effect == IDEM_EFFECT_IN_DOUBT
                                  ? IDEM_EFFECT_IN_DOUBT
                                  : call_effect_so_far(call);
    bool timed_out = call->parent && status == IDEM_DEADLINE_EXCEEDED;
    const char *waited_for = call->base.waited_for;

    idem_call_fail(&call->base, status, effect,
                   timed_out ? IDEM_ATTEMPT_TIMEOUT : NULL, "%s%s%s",
                   interrupt_text(call, status), waited_for ? "; " : "",
                   waited_for ? waited_for : "");
}

/* On the answer's way. What waits for another attempt tells of the last one,
 * as what has no time for another does (outcome.h). */
static void
replace_answer(struct call *call, enum idem_status status)
{
    struct idem_outcome *outcome = &call->base.outcome;
    char last[IDEM_MESSAGE_MAX];

    outcome->status = status;
    call->base.trailers = (struct idem_metadata){0}; /* of another end */
    if (outcome->last_status == IDEM_OK) {
        outcome->reason[0] = 0;
        snprintf(outcome->message, sizeof outcome->message, "%s",
                 interrupt_text(call, status));
        return;
    }
    memcpy(last, outcome->message, sizeof last);
    snprintf(outcome->message, sizeof outcome->message,
             "%s; the last attempt: %s: %.160s", interrupt_text(call, status),
             idem_status_name(outcome->last_status), last);
}

static enum idem_step
answer_interrupted(struct call *call)
{
    enum idem_status status = interrupt_of(call);

    if (!call->up) {
        fail_interrupted(call, status);
        return IDEM_ANSWER;
    }
    if (call->base.outcome.status != IDEM_OK)
        replace_answer(call, status);
    return IDEM_NEXT;
}

/* With the lock: try to get the call back from its holder. */
static bool
take_back(struct call *call)
{
    unsigned hold = CALL_KEPT;
    bool mine;

    if (!atomic_compare_exchange_strong(&call->hold, &hold, CALL_TAKING))
        return false;
    mine = call->holder && call->holder->withdraw(&call->base, call->with);
    atomic_store_explicit(&call->hold, mine ? CALL_LOOSE : CALL_KEPT,
                          memory_order_release);
    return mine;
}

/* Somebody tries to take it back, and has the lock until he knows. */
static void
wait_for_taker(struct call *call)
{
    pthread_mutex_lock(&call->lock);
    atomic_store_explicit(&call->hold, CALL_LOOSE, memory_order_relaxed);
    pthread_mutex_unlock(&call->lock);
}

void
call_let_go(struct call *call)
{
    unsigned hold = atomic_load_explicit(&call->hold, memory_order_relaxed);

    if (hold == CALL_KEPT && atomic_compare_exchange_strong_explicit(
                                 &call->hold, &hold, CALL_LOOSE,
                                 memory_order_acq_rel, memory_order_acquire))
        return;
    if (hold != CALL_LOOSE)
        wait_for_taker(call);
}

enum idem_step
call_after_wait(struct call *call)
{
    bool mine;

    if (interrupt_of(call) == IDEM_OK)
        return IDEM_WAIT;
    pthread_mutex_lock(&call->lock);
    mine = take_back(call);
    pthread_mutex_unlock(&call->lock);
    return mine ? answer_interrupted(call) : IDEM_WAIT;
}

void
call_interrupt(struct call *call, enum idem_status status)
{
    bool mine = false, first;

    pthread_mutex_lock(&call->lock);
    first = interrupt_of(call) == IDEM_OK;
    if (first) {
        /* Then look whether it is kept; who keeps it does the same the other
         * way round (idem_call_keep): one of the two sees the other. */
        atomic_store(&call->interrupt, status);
        mine = take_back(call);
    }
    pthread_mutex_unlock(&call->lock);
    if (mine) {
        if (call_walk(call, answer_interrupted(call)))
            call_unref(call); /* the walk's: the caller has his own */
    } else if (first && call->ops->interrupted) {
        call->ops->interrupted(call);
    }
}

bool
call_keep_unarmed(struct call *call, const struct idem_holder *holder,
                  void *with)
{
    unsigned hold = CALL_KEPT;

    call_let_go(call); /* of a hook that keeps it twice */
    call->holder = holder;
    call->with = with;
    /* Then look whether it is interrupted: see call_interrupt. */
    atomic_store(&call->hold, CALL_KEPT);
    if (!holder || interrupt_of(call) == IDEM_OK ||
        !atomic_compare_exchange_strong(&call->hold, &hold, CALL_LOOSE))
        return true; /* or whoever interrupts has seen that it is kept */
    answer_interrupted(call);
    return false;
}

bool
idem_call_keep(struct idem_call *base, const struct idem_holder *holder,
               void *with)
{
    struct call *call = call_of(base);

    call_let_go(call); /* or the timer might take it from the keeper before */
    call_arm(call);
    return call_keep_unarmed(call, holder, with);
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
