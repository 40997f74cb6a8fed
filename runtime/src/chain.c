#include "chain.h"

#include <stdio.h>
#include <string.h>

static void
write_text(struct chain *chain)
{
    size_t used = 0;

    chain->text[0] = 0;
    for (unsigned i = 0; i < chain->count && used < sizeof(chain->text); i++)
        used +=
            (size_t)snprintf(chain->text + used, sizeof(chain->text) - used,
                             "%s%s", i ? " > " : "", chain->at[i]->ops->name);
}

static void
plan_walk(struct chain *chain)
{
    chain->down[chain->count] = (unsigned char)chain->count;
    for (unsigned i = chain->count; i-- > 0;)
        chain->down[i] =
            chain->at[i]->ops->request ? (unsigned char)i : chain->down[i + 1];
    chain->up[0] = 0;
    for (unsigned i = 0; i < chain->count; i++)
        chain->up[i + 1] =
            chain->at[i]->ops->reply ? (unsigned char)(i + 1) : chain->up[i];
}

static enum idem_status
refuse(struct idem_interceptor *interceptor, enum idem_status status,
       const char *why, struct idem_error *err)
{
    idem_fail(err, status, "interceptor %s: %s", interceptor->ops->name, why);
    interceptor->ops->free(interceptor);
    return status;
}

enum idem_status
chain_add(struct chain *chain, struct idem_interceptor *interceptor,
          struct idem_error *err)
{
    if (chain->sealed)
        return refuse(interceptor, IDEM_FAILED_PRECONDITION,
                      "the chain is in use already", err);
    if (chain->count == CHAIN_MAX)
        return refuse(interceptor, IDEM_RESOURCE_EXHAUSTED, "the chain is full",
                      err);

    unsigned place = chain->count;

    while (place > 0 &&
           chain->at[place - 1]->ops->band > interceptor->ops->band) {
        chain->at[place] = chain->at[place - 1];
        place--;
    }
    chain->at[place] = interceptor;
    interceptor->slot = chain->count++;
    chain->n_listen += interceptor->ops->message != NULL;
    plan_walk(chain);
    write_text(chain);
    return IDEM_OK;
}

void
chain_seal(struct chain *chain)
{
    chain->sealed = true;
}

bool
chain_has_band(const struct chain *chain, enum idem_band band)
{
    for (unsigned i = 0; i < chain->count; i++)
        if (chain->at[i]->ops->band == band)
            return true;
    return false;
}

void
chain_stop(struct chain *chain)
{
    for (unsigned i = 0; i < chain->count; i++)
        if (chain->at[i]->ops->stop)
            chain->at[i]->ops->stop(chain->at[i]);
}

void
chain_free(struct chain *chain)
{
    for (unsigned i = 0; i < chain->count; i++)
        chain->at[i]->ops->free(chain->at[i]);
    memset(chain, 0, sizeof(*chain));
}
