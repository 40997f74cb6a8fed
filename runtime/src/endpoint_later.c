#include "server_inside.h"

/* Handlers that keep their context and answer later (dispatch ASYNC). The call
 * stays kept, as while a worker runs it, until somebody completes it.
 *
 * That it was given up is told on the timers' thread: whoever gives it up holds
 * the call's lock, and may be anybody. */

/* All under the call's lock, but for the reply. */
struct later {
    struct server_call *call;
    struct later *earlier; /* of an execution before this one */
    struct ProtobufCMessage *reply;
    void (*cancelled)(void *with);
    void *with;
    bool given_up;
    bool told;    /* or about to be: the timer runs, or fires */
    bool telling; /* the callback runs, on … */
    pthread_t teller;
    bool complete;          /* the call is the library's again */
    pthread_cond_t silent;  /* not telling any more */
    struct idem_timer tell; /* holds a reference of the call while it runs */
};

static void
fire_tell(struct idem_timer *timer)
{
    struct later *later =
        (struct later *)((char *)timer - offsetof(struct later, tell));
    struct call *call = &later->call->call;
    void (*cancelled)(void *with);
    void *with;

    pthread_mutex_lock(&call->lock);
    later->telling = later->cancelled && !later->complete;
    later->teller = pthread_self();
    cancelled = later->telling ? later->cancelled : NULL;
    with = later->with;
    pthread_mutex_unlock(&call->lock);
    if (cancelled)
        cancelled(with);
    pthread_mutex_lock(&call->lock);
    later->telling = false;
    pthread_cond_broadcast(&later->silent);
    pthread_mutex_unlock(&call->lock);
    call_unref(call);
}

/* With the lock. */
static void
tell_if_wanted(struct later *later)
{
    struct idem_call *base = &later->call->call.base;

    if (!later->given_up || !later->cancelled || later->told || later->complete)
        return;
    later->told = true;
    call_ref(&later->call->call);
    idem_timer_start(base->timers, &later->tell,
                     base->clock->monotonic_ns(base->clock));
}

void
later_give_up(struct later *later)
{
    later->given_up = true;
    tell_if_wanted(later);
}

bool
later_init(struct server_call *call)
{
    struct idem_call *base = &call->call.base;
    struct later *later = idem_arena_zalloc(base->arena, sizeof *later);

    if (!later) {
        idem_call_fail(base, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED, NULL,
                       "out of memory");
        return false;
    }
    later->call = call;
    later->earlier = call->later;
    later->tell.fire = fire_tell;
    pthread_cond_init(&later->silent, NULL);
    call->later = later;
    return true;
}

void
later_fini(struct later *later)
{
    for (; later; later = later->earlier)
        pthread_cond_destroy(&later->silent);
}

bool
later_run(struct server_call *call)
{
    const struct idem_call *base = &call->call.base;
    struct ProtobufCMessage *reply = endpoint_begin(call);
    struct idem_context *before;

    if (!reply)
        return false;
    call->later->reply = reply;
    before = context_enter(&call->context);
    (void)base->method->invoke(call->entry->handlers, &call->context,
                               base->message, reply);
    (void)context_enter(before);
    return true;
}

/* Nobody is told from here on, and no callback runs elsewhere. */
static void
fall_silent(struct later *later)
{
    struct call *call = &later->call->call;
    bool stopped;

    pthread_mutex_lock(&call->lock);
    IDEM_ASSERT(!later->complete);
    later->complete = true;
    stopped = later->told && idem_timer_stop(call->base.timers, &later->tell);
    while (later->telling && !pthread_equal(later->teller, pthread_self()))
        pthread_cond_wait(&later->silent, &call->lock);
    pthread_mutex_unlock(&call->lock);
    if (stopped)
        call_unref(call);
}

void
idem_context_complete(struct idem_context *context, enum idem_status status)
{
    struct server_call *call = server_call_of_context(context);
    struct idem_call *base = &call->call.base;

    IDEM_ASSERT(call->later);
    fall_silent(call->later);
    context_end(context, status);
    if (base->outcome.status == IDEM_OK)
        endpoint_pack(call, call->later->reply);
    idem_call_resume(base, IDEM_ANSWER);
}

void
idem_context_on_cancel(struct idem_context *context,
                       void (*cancelled)(void *with), void *with)
{
    struct server_call *call = server_call_of_context(context);

    IDEM_ASSERT(call->later);
    pthread_mutex_lock(&call->call.lock);
    call->later->cancelled = cancelled;
    call->later->with = with;
    tell_if_wanted(call->later);
    pthread_mutex_unlock(&call->call.lock);
}
