#include "errand.h"

#include "lay_bytes.h"

#include <stdlib.h>

#define ERRANDS_MAX 100000 /* of one server at once */

void
errands_init(struct errands *errands)
{
    pthread_mutex_init(&errands->lock, NULL);
    pthread_cond_init(&errands->none, NULL);
    errands->count = 0;
    errands->stopped = false;
    errands->late = NULL;
    errands->spare = NULL;
    errands->spares = 0;
}

void
errands_fini(struct errands *errands)
{
    pthread_mutex_lock(&errands->lock);
    while (errands->count > 0)
        pthread_cond_wait(&errands->none, &errands->lock);
    pthread_mutex_unlock(&errands->lock);
    pthread_cond_destroy(&errands->none);
    pthread_mutex_destroy(&errands->lock);
}

bool
errands_begin(struct errands *errands)
{
    bool begun;

    pthread_mutex_lock(&errands->lock);
    begun = !errands->stopped && errands->count < ERRANDS_MAX;
    if (begun)
        errands->count++;
    pthread_mutex_unlock(&errands->lock);
    return begun;
}

void
errands_end(struct errands *errands)
{
    pthread_mutex_lock(&errands->lock);
    if (--errands->count == 0)
        pthread_cond_broadcast(&errands->none);
    pthread_mutex_unlock(&errands->lock);
}

bool
errand_ticket(struct idem_ticket *copy, const struct idem_ticket *ticket,
              void **texts)
{
    const struct idem_record_id *id = &ticket->id;
    uint8_t *at = malloc(id->key.text.size + id->tenant.size + 1);

    if (!at)
        return false;
    *texts = at;
    *copy = (struct idem_ticket){
        .id = *id,
        .fingerprint = ticket->fingerprint,
        .mode = ticket->mode,
        .after_crash = ticket->after_crash,
        .lease_ms = ticket->lease_ms,
        .deadline_ns = INT64_MAX,
        .token = ticket->token,
    };
    copy->id.key.text = lay_bytes(&at, id->key.text);
    copy->id.tenant = lay_bytes(&at, id->tenant);
    return true;
}
