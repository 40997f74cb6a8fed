#include "passage.h"

#include "fault.h"
#include "once_answer.h"
#include "once_verdict.h"
#include "renewal.h"
#include "shared_answer.h"

#include <idem/context_once.h>

#define FIRST_NAP_NS (5 * NS_PER_MS)
#define LONGEST_NAP_NS (250 * NS_PER_MS)
#define NAPS_TO_LONGEST 6

/* --- Leaving --- */

static enum idem_step
answer_step(const struct passage *passage)
{
    return passage->up ? IDEM_NEXT : IDEM_ANSWER;
}

/* A copy for those that wait, when somebody does. */
static struct shared_answer *
share(struct passage *passage, const struct idem_answer *recorded)
{
    if (!recorded ||
        !flights_awaited(&passage->once->flights, &passage->flight))
        return NULL;
    return shared_answer_new(recorded);
}

void
passage_leave(struct passage *passage, const struct idem_answer *recorded)
{
    struct shared_answer *shared = share(passage, recorded);

    passage_give_back(passage);
    flights_leave(&passage->once->flights, &passage->flight, shared);
    shared_answer_unref(shared);
    idem_call_resume(passage->call, answer_step(passage));
}

void
passage_replay(struct passage *passage, const struct idem_answer *answer)
{
    if (passage_wants_rebuild(passage, answer)) {
        passage_rebuild(passage, answer);
        return;
    }
    answer_replay(passage->call, answer);
    once_count(passage->once, ONCE_REPLAYED);
    passage_leave(passage, answer);
}

/* --- Through to the handler --- */

static void
let_through(struct passage *passage)
{
    struct idem_call *call = passage->call;
    struct idem_ticket *ticket = &passage->ticket;

    passage->slot = (struct tx_slot){
        .store = passage->once->store,
        .tx = ticket->tx,
        .mode = ticket->mode,
        .grouped = ticket->group > 0,
        .arena = idem_context_arena(call->context),
        .deadline_ns = call->deadline_ns,
    };
    flights_granted(&passage->flight);
    idem_context_set_slot(call->context, &passage->slot);
    idem_context_set_owned(call->context, true);
    if (ticket->mode == IDEM_MODE_LEASED) {
        idem_context_set_fence(call->context, ticket->token);
        passage->slot.once = passage->once;
        passage->slot.claimed = ticket;
        passage->renewal =
            renewal_start(passage->once, call, ticket, passage->asked_ns);
    }
    idem_context_set_here(
        call->context, ticket->mode == IDEM_MODE_TRANSACTION && ticket->here);
    idem_context_set_task(call->context,
                          ticket->probe ? IDEM_TASK_PROBE : IDEM_TASK_RUN);
    once_count(passage->once, ticket->probe ? ONCE_PROBED : ONCE_EXECUTED);
    (void)IDEM_FAULT("once.handler.before");
    idem_call_resume(call, passage->up ? IDEM_AGAIN : IDEM_NEXT);
}

/* --- Waiting for another process --- */

static int64_t
nap_ns(struct passage *passage)
{
    unsigned n =
        passage->naps < NAPS_TO_LONGEST ? passage->naps : NAPS_TO_LONGEST;
    int64_t longest = FIRST_NAP_NS << n;

    if (longest > LONGEST_NAP_NS)
        longest = LONGEST_NAP_NS;
    passage->naps++;
    return idem_clock_between(passage->once->clock, longest / 2, longest);
}

void
passage_nap_until(struct passage *passage, int64_t until_ns)
{
    if (flights_nap(&passage->once->flights, &passage->flight, until_ns))
        return;
    verdict_stopped(passage);
    passage_leave(passage, NULL);
}

static void
nap(struct passage *passage, int64_t for_ns)
{
    const struct idem_clock *clock = passage->once->clock;

    passage_nap_until(passage, clock->monotonic_ns(clock) + for_ns);
}

static bool
waits_for_others(const struct idem_method *method)
{
    return method->in_flight != IDEM_IN_FLIGHT_REJECT &&
           method->in_flight != IDEM_IN_FLIGHT_ATTACH_ONLY;
}

void
passage_wait_for_other(struct passage *passage)
{
    struct once *once = passage->once;
    int64_t now_ns = once->clock->monotonic_ns(once->clock);

    passage_give_back(passage);
    passage->effect = IDEM_EFFECT_IN_DOUBT;
    passage->ticket.repeat = true;
    if (idem_call_interrupted(passage->call)) {
        verdict_interrupted(passage);
        passage_leave(passage, NULL);
    } else if (now_ns >= passage->give_up_ns ||
               !waits_for_others(passage->call->method)) {
        verdict_busy(passage, passage->ticket.wait_ms);
        passage_leave(passage, NULL);
    } else
        nap(passage, nap_ns(passage));
}

/* --- Asking --- */

void
passage_judge(struct passage *passage)
{
    struct idem_ticket *ticket = &passage->ticket;

    if (ticket->verdict == IDEM_VERDICT_MINE && ticket->id.key.sequence > 0 &&
        !passage->numbered) {
        passage_check_number(passage);
    } else if (ticket->verdict == IDEM_VERDICT_MINE) {
        passage->effect =
            passage->up ? IDEM_EFFECT_ROLLED_BACK : IDEM_EFFECT_REFUSED;
        if (ticket->probe)
            passage->effect = IDEM_EFFECT_IN_DOUBT;
        let_through(passage);
    } else if (ticket->verdict == IDEM_VERDICT_DONE) {
        passage_remember(passage, &ticket->answer);
        passage_fill(passage, &ticket->answer);
        passage_replay(passage, &ticket->answer);
    } else if (ticket->verdict == IDEM_VERDICT_RUNNING)
        passage_wait_for_other(passage);
    else {
        if (ticket->verdict == IDEM_VERDICT_ABANDONED)
            passage_remember_abandoned(passage);
        verdict_refuse(passage);
        passage_leave(passage, NULL);
    }
}

static void
asked(struct idem_ticket *ticket)
{
    struct passage *passage = (struct passage *)ticket;

    (void)IDEM_FAULT("once.claim.after");
    passage_heard(passage);
    passage_judge(passage);
}

static bool
states(const struct passage *passage)
{
    const struct idem_method *method = passage->call->method;

    return method->mode == IDEM_MODE_TRANSACTION &&
           method->transaction == IDEM_TRANSACTION_STATEMENT;
}

void
passage_ask_store(struct passage *passage)
{
    struct idem_store *store = passage->once->store;
    struct idem_ticket *ticket = &passage->ticket;
    const struct idem_clock *clock = passage->once->clock;

    if (!passage_admit(passage))
        return;
    if (!passage->looking && states(passage)) {
        passage_state(passage);
        return;
    }
    (void)IDEM_FAULT("once.claim.before");
    passage->numbered = false;
    ticket->done = asked;
    ticket->deadline_ns = passage->call->deadline_ns;
    passage->asked_ns = clock->monotonic_ns(clock);
    passage_note_epoch(passage);
    once_count(passage->once, ONCE_CLAIMS);
    if (passage->looking)
        store->ops->look(store, ticket);
    else
        store->ops->claim(store, ticket);
}

void
passage_ask(struct passage *passage)
{
    if (!passage_look(passage))
        passage_ask_store(passage);
}

void
passage_repeat(struct passage *passage)
{
    const struct idem_clock *clock = passage->once->clock;

    passage->repeats++;
    passage->ticket.repeat = true;
    idem_context_renew(passage->call->context);
    passage->ticket.arena = idem_context_arena(passage->call->context);
    if (passage->repeats <= 1)
        passage_ask(passage);
    else
        nap(passage,
            idem_clock_between(clock, 0, passage->repeats * FIRST_NAP_NS));
}

/* --- Waking --- */

static void
take_shared(struct passage *passage)
{
    passage->shared = passage->flight.shared;
    answer_replay(passage->call, &passage->shared->answer);
    once_count(passage->once, ONCE_REPLAYED);
    idem_call_resume(passage->call, IDEM_ANSWER);
}

/* It waited beside a first call and is out: nobody waits for it. */
static void
end_wait(struct passage *passage)
{
    passage->effect = IDEM_EFFECT_IN_DOUBT;
    if (idem_call_interrupted(passage->call))
        verdict_interrupted(passage);
    else if (flights_stopped(&passage->once->flights))
        verdict_stopped(passage);
    else
        verdict_busy(passage, 0);
    idem_call_resume(passage->call, IDEM_ANSWER);
}

static void
end_nap(struct passage *passage)
{
    if (idem_call_interrupted(passage->call)) {
        verdict_interrupted(passage);
        passage_leave(passage, NULL);
    } else if (flights_stopped(&passage->once->flights)) {
        verdict_stopped(passage);
        passage_leave(passage, NULL);
    } else if (passage_end_line(passage))
        passage_ask(passage);
}

/* The one before it has left without an answer, maybe in doubt. */
static void
take_turn(struct passage *passage)
{
    passage->effect = IDEM_EFFECT_IN_DOUBT;
    passage_inherit(passage);
}

static void
wake(struct flight *flight, enum flight_wake why)
{
    struct passage *passage = CONTAINER(struct passage, flight, flight);

    if (why == FLIGHT_TURN)
        take_turn(passage);
    if (why == FLIGHT_ANSWER)
        take_shared(passage);
    else if (why == FLIGHT_TURN || flight->place == FLIGHT_FIRST)
        end_nap(passage);
    else
        end_wait(passage);
}

/* --- Entering --- */

struct passage *
passage_new(struct once *once, struct idem_call *call)
{
    struct passage *passage = idem_arena_zalloc(call->arena, sizeof(*passage));
    int64_t now_ns;

    if (!passage)
        return NULL;
    passage->once = once;
    passage->call = call;
    passage->clock = once->own_clock ? once->clock : call->clock;
    now_ns = passage->clock->monotonic_ns(passage->clock);
    passage->effect = IDEM_EFFECT_REFUSED;
    passage->give_up_ns = once->wait_cap_ns > INT64_MAX - now_ns
                              ? INT64_MAX
                              : now_ns + once->wait_cap_ns;
    passage->flight.until_ns = passage->give_up_ns;
    passage->flight.timers = call->timers;
    passage->flight.wake = wake;
    return passage;
}

void
passage_enter(struct passage *passage)
{
    struct once *once = passage->once;
    struct idem_call *call = passage->call;
    bool wait = call->method->in_flight != IDEM_IN_FLIGHT_REJECT;

    switch (flights_join(&once->flights, &passage->flight, wait)) {
    case FLIGHT_SEAT_FIRST:
        passage_ask(passage);
        return;
    case FLIGHT_SEAT_WAITING:
        once_count(once, ONCE_ATTACHED);
        return;
    case FLIGHT_SEAT_REUSED:
        verdict_reused_elsewhere(passage);
        break;
    case FLIGHT_SEAT_BUSY:
        verdict_busy(passage, 0);
        break;
    case FLIGHT_SEAT_STOPPED:
        verdict_stopped(passage);
        break;
    }
    idem_call_resume(call, IDEM_ANSWER);
}
