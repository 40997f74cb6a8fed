#include <idem/step.h>

#include "fault.h"
#include "once.h"
#include "tx.h"

#include <idem/context_once.h>

#include <stdlib.h>
#include <string.h>

/* A mark under way. The handler waits for it until its deadline and then leaves
 * it to the store; the last one of both frees it. */
struct mark {
    struct idem_ticket ticket; /* first: a ticket is its mark */
    struct once *once;
    void *texts;
    char *name;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t wake;
    bool answered, left;
};

static void
mark_free(struct mark *mark)
{
    struct once *once = mark->once;

    pthread_cond_destroy(&mark->wake);
    pthread_mutex_destroy(&mark->lock);
    free(mark->texts);
    free(mark->name);
    free(mark);
    errands_end(&once->errands);
}

static void
answered(struct idem_ticket *ticket)
{
    struct mark *mark = (struct mark *)ticket;
    bool left;

    pthread_mutex_lock(&mark->lock);
    mark->answered = true;
    left = mark->left;
    pthread_cond_signal(&mark->wake);
    pthread_mutex_unlock(&mark->lock);
    if (left)
        mark_free(mark);
}

/* NULL: the server stops, or memory is out. */
static struct mark *
mark_new(const struct tx_slot *slot, const char *name)
{
    struct once *once = slot->once;
    struct mark *mark;

    if (!errands_begin(&once->errands))
        return NULL;
    mark = calloc(1, sizeof(*mark));
    if (!mark || !(mark->name = strdup(name)) ||
        !errand_ticket(&mark->ticket, slot->claimed, &mark->texts)) {
        if (mark)
            free(mark->name);
        free(mark);
        errands_end(&once->errands);
        return NULL;
    }
    mark->once = once;
    mark->ticket.step = mark->name;
    mark->ticket.deadline_ns = slot->deadline_ns;
    mark->ticket.done = answered;
    pthread_mutex_init(&mark->lock, NULL);
    pthread_cond_init(&mark->wake, NULL);
    return mark;
}

/* False: the deadline came first, and the mark is the store's. */
static bool
await(struct mark *mark, int64_t deadline_ns)
{
    const struct idem_clock *clock = mark->once->clock;
    bool done;

    pthread_mutex_lock(&mark->lock);
    while (!mark->answered && clock->monotonic_ns(clock) < deadline_ns)
        clock->wait_until(clock, &mark->wake, &mark->lock, deadline_ns);
    done = mark->answered;
    mark->left = !done;
    pthread_mutex_unlock(&mark->lock);
    return done;
}

static enum idem_status
judge(struct idem_context *context, const struct idem_ticket *ticket,
      struct idem_error *err)
{
    struct tx_slot *slot = idem_context_slot(context);

    if (ticket->verdict == IDEM_VERDICT_MINE) {
        slot->begun = true;
        return IDEM_OK;
    }
    if (ticket->verdict != IDEM_VERDICT_FENCED)
        return idem_fail(err, IDEM_UNAVAILABLE, "step %s is not marked: %s",
                         ticket->step, ticket->error.message);
    idem_context_set_owned(context, false);
    return idem_fail(err, IDEM_ABORTED, "step %s: the lease was lost",
                     ticket->step);
}

enum idem_status
idem_step(struct idem_context *context, const char *name,
          struct idem_error *err)
{
    struct tx_slot *slot = idem_context_slot(context);
    struct mark *mark;
    enum idem_status status;

    IDEM_ASSERT(name && *name);
    if (!slot || !slot->claimed || !slot->claimed->steps)
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "step %s: the method does not state steps", name);
    mark = mark_new(slot, name);
    if (!mark)
        return idem_fail(err, IDEM_UNAVAILABLE, "step %s is not marked", name);
    (void)IDEM_FAULT("once.mark.before");
    once_count(slot->once, ONCE_CLAIMS);
    slot->store->ops->mark(slot->store, &mark->ticket);
    if (!await(mark, slot->deadline_ns))
        return idem_fail(err, IDEM_UNAVAILABLE,
                         "step %s was not marked before the deadline", name);
    status = judge(context, &mark->ticket, err);
    (void)IDEM_FAULT("once.mark.after");
    mark_free(mark);
    return status;
}
