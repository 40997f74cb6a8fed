#include "lead.h"

#include <idem/base.h>

#define BEHIND_MAX 4 /* servers whose calls came with one event */

enum turn { LED, LENT, OUT };

static _Thread_local struct {
    struct lead *lead; /* NULL: leads none, or lends it */
    unsigned n;
    struct {
        void (*run)(void *with);
        void *with;
    } behind[BEHIND_MAX];
} here;

void
lead_init(struct lead *lead, unsigned number)
{
    lead->number = number;
    atomic_init(&lead->pair, false);
    atomic_init(&lead->turn, LED);
    pthread_mutex_init(&lead->lock, NULL);
    pthread_cond_init(&lead->vacancy, NULL);
    lead->vacant = true;
}

void
lead_fini(struct lead *lead)
{
    pthread_cond_destroy(&lead->vacancy);
    pthread_mutex_destroy(&lead->lock);
}

void
lead_await(struct lead *lead)
{
    pthread_mutex_lock(&lead->lock);
    while (!lead->vacant)
        pthread_cond_wait(&lead->vacancy, &lead->lock);
    lead->vacant = false;
    pthread_mutex_unlock(&lead->lock);
    here.lead = lead;
}

bool
lead_has_behind(void)
{
    return here.n > 0;
}

bool
lead_run_behind(struct lead *lead)
{
    int lent = LENT;
    bool leads;

    here.lead = NULL;
    atomic_store(&lead->turn, LENT);
    for (unsigned i = 0; i < here.n; i++)
        here.behind[i].run(here.behind[i].with);
    here.n = 0;
    leads = atomic_compare_exchange_strong(&lead->turn, &lent, LED);
    if (leads)
        here.lead = lead;
    else
        atomic_store(&lead->turn, LED);
    return leads;
}

void
lead_forget(void)
{
    here.lead = NULL;
}

struct lead *
lead_here(void)
{
    struct lead *lead = here.lead;

    if (!lead || here.n == BEHIND_MAX || !atomic_load(&lead->pair) ||
        atomic_load(&lead->turn) != LED)
        return NULL;
    return lead;
}

void
lead_put_behind(void (*run)(void *with), void *with)
{
    IDEM_ASSERT(here.n < BEHIND_MAX);
    here.behind[here.n].run = run;
    here.behind[here.n++].with = with;
}

bool
lead_is_lent(const struct lead *lead)
{
    return atomic_load(&lead->turn) == LENT;
}

void
lead_relieve(struct lead *lead)
{
    int lent = LENT;

    if (!atomic_compare_exchange_strong(&lead->turn, &lent, OUT))
        return;
    pthread_mutex_lock(&lead->lock);
    lead->vacant = true;
    pthread_cond_signal(&lead->vacancy);
    pthread_mutex_unlock(&lead->lock);
}
