#include "shared_answer.h"

#include "lay_bytes.h"

#include <stdlib.h>

struct shared_answer *
shared_answer_new(const struct idem_answer *answer)
{
    size_t size = answer->message.size + answer->reason.size +
                  answer->reply.size + answer->trailers.size;
    struct shared_answer *shared = malloc(sizeof(*shared) + size);
    uint8_t *at = (uint8_t *)(shared + 1);

    if (!shared)
        return NULL;
    atomic_init(&shared->refs, 1);
    shared->answer = *answer;
    shared->answer.message = lay_bytes(&at, answer->message);
    shared->answer.reason = lay_bytes(&at, answer->reason);
    shared->answer.reply = lay_bytes(&at, answer->reply);
    shared->answer.trailers = lay_bytes(&at, answer->trailers);
    return shared;
}

struct shared_answer *
shared_answer_ref(struct shared_answer *shared)
{
    atomic_fetch_add(&shared->refs, 1);
    return shared;
}

void
shared_answer_unref(struct shared_answer *shared)
{
    if (shared && atomic_fetch_sub(&shared->refs, 1) == 1)
        free(shared);
}
