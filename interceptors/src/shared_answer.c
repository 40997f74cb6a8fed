#include "shared_answer.h"

#include <stdlib.h>
#include <string.h>

static struct idem_bytes
put(uint8_t **at, struct idem_bytes bytes)
{
    struct idem_bytes copy = {*at, bytes.size};

    if (bytes.size > 0)
        memcpy(*at, bytes.data, bytes.size);
    *at += bytes.size;
    return copy;
}

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
    shared->answer.message = put(&at, answer->message);
    shared->answer.reason = put(&at, answer->reason);
    shared->answer.reply = put(&at, answer->reply);
    shared->answer.trailers = put(&at, answer->trailers);
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
