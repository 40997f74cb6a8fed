#include "late.h"

#include "shared_answer.h"

#include <stdlib.h>

#include <utlist.h>

#define FIRST_PAUSE_NS (50 * NS_PER_MS)
#define LONGEST_PAUSE_NS (1000 * NS_PER_MS)

struct late {
    struct idem_ticket ticket; /* first: a ticket is its late word */
    struct once *once;
    struct idem_timers *timers;
    struct idem_timer timer;
    store_op_fn *op;
    struct shared_answer *answer;
    void *texts;
    int64_t until_ns, pause_ns;
    struct late *prev, *next; /* in errands->late, by its lock */
};

static void
destroy(struct late *late)
{
    struct once *once = late->once;

    shared_answer_unref(late->answer);
    free(late->texts);
    free(late);
    errands_end(&once->errands);
}

/* False: it is time to give up. */
static bool
wait_again(struct late *late)
{
    const struct idem_clock *clock = late->once->clock;
    struct errands *errands = &late->once->errands;
    int64_t at_ns =
        clock->monotonic_ns(clock) +
        idem_clock_between(clock, late->pause_ns / 2, late->pause_ns);
    bool waits;

    late->pause_ns *= 2;
    if (late->pause_ns > LONGEST_PAUSE_NS)
        late->pause_ns = LONGEST_PAUSE_NS;
    pthread_mutex_lock(&errands->lock);
    waits = !errands->stopped && at_ns < late->until_ns;
    if (waits) {
        DL_APPEND(errands->late, late);
        idem_timer_start(late->timers, &late->timer, at_ns);
    }
    pthread_mutex_unlock(&errands->lock);
    return waits;
}

static void
fire(struct idem_timer *timer)
{
    struct late *late = CONTAINER(struct late, timer, timer);
    struct errands *errands = &late->once->errands;
    bool stopped;

    pthread_mutex_lock(&errands->lock);
    stopped = errands->stopped;
    DL_DELETE(errands->late, late);
    pthread_mutex_unlock(&errands->lock);
    if (stopped) {
        destroy(late);
        return;
    }
    once_count(late->once, ONCE_CLAIMS);
    late->op(late->once->store, &late->ticket);
}

static void
tried(struct idem_ticket *ticket)
{
    struct late *late = (struct late *)ticket;

    if (ticket->verdict == IDEM_VERDICT_FENCED)
        once_count(late->once, ONCE_FENCED);
    if (ticket->verdict != IDEM_VERDICT_FAILED || !wait_again(late))
        destroy(late);
}

static struct late *
late_new(struct once *once, struct idem_call *call,
         const struct idem_ticket *ticket, store_op_fn *op)
{
    struct late *late = calloc(1, sizeof(*late));

    if (!late)
        return NULL;
    late->once = once;
    late->timers = call->timers;
    late->timer.fire = fire;
    late->op = op;
    late->pause_ns = FIRST_PAUSE_NS;
    late->until_ns = once->clock->monotonic_ns(once->clock) +
                     ms_to_ns(call->method->max_execution_ms);
    late->answer = shared_answer_new(&ticket->answer);
    if (!late->answer || !errand_ticket(&late->ticket, ticket, &late->texts)) {
        shared_answer_unref(late->answer);
        free(late);
        return NULL;
    }
    late->ticket.answer = late->answer->answer;
    late->ticket.done = tried;
    return late;
}

void
late_start(struct once *once, struct idem_call *call,
           const struct idem_ticket *ticket, store_op_fn *op)
{
    struct late *late;

    if (!errands_begin(&once->errands))
        return;
    late = late_new(once, call, ticket, op);
    if (!late)
        errands_end(&once->errands);
    else if (!wait_again(late))
        destroy(late);
}

void
errands_stop(struct errands *errands)
{
    struct late *late;

    pthread_mutex_lock(&errands->lock);
    errands->stopped = true;
    DL_FOREACH(errands->late, late)
    if (idem_timer_stop(late->timers, &late->timer))
        idem_timer_start(late->timers, &late->timer, 0);
    pthread_mutex_unlock(&errands->lock);
}
