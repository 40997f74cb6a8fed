#include "verifier.h"

#include <idem/arena.h>
#include <idem/reason.h>

#include <pthread.h>
#include <stdlib.h>

#define WAITING_MAX 1000

/* One call's, in its arena. */
struct waiting {
    struct verifier *verifier;
    struct idem_call *call;
    struct waiting *next, **link; /* link is NULL when it is out */
};

struct verifier {
    verifier_check_fn *check;
    verifier_forget_fn *forget;
    void *with;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t change;
    struct waiting *first, **last;
    unsigned count;
    bool stopping;
};

/* --- The line: with the lock --- */

static void
line_up(struct verifier *verifier, struct waiting *waiting)
{
    waiting->next = NULL;
    waiting->link = verifier->last;
    *verifier->last = waiting;
    verifier->last = &waiting->next;
    verifier->count++;
}

static void
step_out(struct verifier *verifier, struct waiting *waiting)
{
    *waiting->link = waiting->next;
    if (waiting->next)
        waiting->next->link = waiting->link;
    else
        verifier->last = waiting->link;
    waiting->link = NULL;
    verifier->count--;
}

/* --- The thread --- */

/* NULL: it is to stop. */
static struct idem_call *
await_call(struct verifier *verifier)
{
    struct idem_call *call = NULL;

    pthread_mutex_lock(&verifier->lock);
    while (!verifier->first && !verifier->stopping)
        pthread_cond_wait(&verifier->change, &verifier->lock);
    if (verifier->first) {
        call = verifier->first->call;
        step_out(verifier, verifier->first);
    }
    pthread_mutex_unlock(&verifier->lock);
    return call;
}

static void *
run(void *with)
{
    struct verifier *verifier = with;
    struct idem_call *call;

    while ((call = await_call(verifier)))
        idem_call_resume(call, verifier->check(verifier->with, call));
    return NULL;
}

/* --- What is asked of it --- */

static bool
withdraw(struct idem_call *call, void *with)
{
    struct waiting *waiting = with;
    struct verifier *verifier = waiting->verifier;
    bool mine;

    pthread_mutex_lock(&verifier->lock);
    mine = waiting->link;
    if (mine)
        step_out(verifier, waiting);
    pthread_mutex_unlock(&verifier->lock);
    if (mine)
        verifier->forget(call);
    return mine;
}

static const struct idem_holder holder = {.withdraw = withdraw};

enum idem_step
verifier_take(struct verifier *verifier, struct idem_call *call)
{
    struct waiting *waiting = idem_arena_zalloc(call->arena, sizeof *waiting);
    bool taken;

    if (waiting) {
        *waiting = (struct waiting){.verifier = verifier, .call = call};
        if (!idem_call_keep(call, &holder, waiting))
            return IDEM_ANSWER;
    }
    pthread_mutex_lock(&verifier->lock);
    taken = waiting && verifier->count < WAITING_MAX;
    if (taken)
        line_up(verifier, waiting);
    pthread_cond_signal(&verifier->change);
    pthread_mutex_unlock(&verifier->lock);
    if (taken)
        return IDEM_WAIT;
    idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED,
                   IDEM_OVERLOADED, "%d signatures wait to be checked",
                   WAITING_MAX);
    return IDEM_ANSWER;
}

/* --- Its life --- */

enum idem_status
verifier_new(struct verifier **out, verifier_check_fn *check,
             verifier_forget_fn *forget, void *with, struct idem_error *err)
{
    struct verifier *verifier = calloc(1, sizeof *verifier);

    if (!verifier)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    verifier->check = check;
    verifier->forget = forget;
    verifier->with = with;
    verifier->last = &verifier->first;
    pthread_mutex_init(&verifier->lock, NULL);
    pthread_cond_init(&verifier->change, NULL);
    if (pthread_create(&verifier->thread, NULL, run, verifier) != 0) {
        pthread_cond_destroy(&verifier->change);
        pthread_mutex_destroy(&verifier->lock);
        free(verifier);
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "no thread to check signatures");
    }
    *out = verifier;
    return IDEM_OK;
}

void
verifier_free(struct verifier *verifier)
{
    if (!verifier)
        return;
    pthread_mutex_lock(&verifier->lock);
    verifier->stopping = true;
    pthread_cond_signal(&verifier->change);
    pthread_mutex_unlock(&verifier->lock);
    pthread_join(verifier->thread, NULL);
    pthread_cond_destroy(&verifier->change);
    pthread_mutex_destroy(&verifier->lock);
    free(verifier);
}
