#include "renewal.h"

#include <idem/context_once.h>

#include <stdlib.h>
#include <string.h>

/* Kept to be used again: one thread makes a renewal and another one ends it,
 * which malloc answers by growing and shrinking its heaps all the time. */
#define SPARES_MAX 1024

/* Threads: the timers' and the store's take turns; renewal_end comes from the
 * call's. Who sees that it is over and that nothing is under way frees it. */
struct renewal {
    struct idem_ticket ticket; /* first: a ticket is its renewal */
    struct once *once;
    struct idem_timers *timers;
    void *texts;
    int64_t last_ns; /* no renewal after this */

    pthread_mutex_t lock; /* guards the rest; around the timers' */
    struct idem_context *context;
    struct idem_timer timer;
    int64_t asked_ns, valid_ns;
    bool armed, asking, over;

    struct renewal *next; /* of the spare ones, by the lock of errands */
};

static int64_t
now(const struct renewal *renewal)
{
    return renewal->once->clock->monotonic_ns(renewal->once->clock);
}

/* Empty, or NULL. */
static struct renewal *
take(struct errands *errands)
{
    struct renewal *renewal;

    pthread_mutex_lock(&errands->lock);
    renewal = errands->spare;
    if (renewal) {
        errands->spare = renewal->next;
        errands->spares--;
    }
    pthread_mutex_unlock(&errands->lock);
    if (!renewal)
        return calloc(1, sizeof(*renewal));
    memset(renewal, 0, sizeof(*renewal));
    return renewal;
}

static void
give(struct errands *errands, struct renewal *renewal)
{
    bool kept;

    if (!renewal)
        return;
    pthread_mutex_lock(&errands->lock);
    kept = errands->spares < SPARES_MAX;
    if (kept) {
        renewal->next = errands->spare;
        errands->spare = renewal;
        errands->spares++;
    }
    pthread_mutex_unlock(&errands->lock);
    if (!kept)
        free(renewal);
}

void
renewal_free_spares(struct errands *errands)
{
    while (errands->spare) {
        struct renewal *renewal = errands->spare;

        errands->spare = renewal->next;
        free(renewal);
    }
    errands->spares = 0;
}

static void
destroy(struct renewal *renewal)
{
    struct once *once = renewal->once;

    pthread_mutex_destroy(&renewal->lock);
    free(renewal->texts);
    give(&once->errands, renewal);
    errands_end(&once->errands);
}

static void
arm(struct renewal *renewal)
{
    renewal->armed = true;
    idem_timer_start(renewal->timers, &renewal->timer,
                     now(renewal) + ms_to_ns(renewal->ticket.lease_ms) / 3);
}

static void
fire(struct idem_timer *timer)
{
    struct renewal *renewal = CONTAINER(struct renewal, timer, timer);
    bool over, ask;

    pthread_mutex_lock(&renewal->lock);
    renewal->armed = false;
    over = renewal->over;
    renewal->asked_ns = now(renewal);
    ask = renewal->asking = !over && renewal->asked_ns < renewal->last_ns;
    pthread_mutex_unlock(&renewal->lock);
    if (over)
        destroy(renewal);
    else if (ask) {
        once_count(renewal->once, ONCE_CLAIMS);
        renewal->once->store->ops->renew(renewal->once->store,
                                         &renewal->ticket);
    }
}

/* A renewal that failed is tried again; owned is false while the last one that
 * is known to have worked is over. */
static void
note(struct renewal *renewal)
{
    enum idem_verdict verdict = renewal->ticket.verdict;

    if (verdict == IDEM_VERDICT_MINE)
        renewal->valid_ns =
            renewal->asked_ns + ms_to_ns(renewal->ticket.lease_ms);
    idem_context_set_owned(renewal->context,
                           verdict != IDEM_VERDICT_FENCED &&
                               now(renewal) < renewal->valid_ns);
    if (verdict != IDEM_VERDICT_FENCED)
        arm(renewal);
}

static void
renewed(struct idem_ticket *ticket)
{
    struct renewal *renewal = (struct renewal *)ticket;
    bool over;

    pthread_mutex_lock(&renewal->lock);
    renewal->asking = false;
    over = renewal->over;
    if (!over)
        note(renewal);
    pthread_mutex_unlock(&renewal->lock);
    if (over)
        destroy(renewal);
}

struct renewal *
renewal_start(struct once *once, struct idem_call *call,
              const struct idem_ticket *claimed, int64_t asked_ns)
{
    struct renewal *renewal;

    if (!errands_begin(&once->errands))
        return NULL;
    renewal = take(&once->errands);
    if (!renewal ||
        !errand_ticket(&renewal->ticket, claimed, &renewal->texts)) {
        give(&once->errands, renewal);
        errands_end(&once->errands);
        return NULL;
    }
    renewal->once = once;
    renewal->timers = call->timers;
    renewal->context = call->context;
    renewal->ticket.done = renewed;
    renewal->timer.fire = fire;
    renewal->valid_ns = asked_ns + ms_to_ns(claimed->lease_ms);
    renewal->last_ns = asked_ns + ms_to_ns(call->method->max_execution_ms);
    pthread_mutex_init(&renewal->lock, NULL);
    pthread_mutex_lock(&renewal->lock);
    arm(renewal);
    pthread_mutex_unlock(&renewal->lock);
    return renewal;
}

void
renewal_end(struct renewal *renewal)
{
    bool gone;

    if (!renewal)
        return;
    pthread_mutex_lock(&renewal->lock);
    renewal->over = true;
    if (renewal->armed && idem_timer_stop(renewal->timers, &renewal->timer))
        renewal->armed = false;
    gone = !renewal->armed && !renewal->asking;
    pthread_mutex_unlock(&renewal->lock);
    if (gone)
        destroy(renewal);
}
