#include "channel_inside.h"

#include <stdlib.h>
#include <string.h>

/* What came back beside a reply, for the caller. */

/* Entries and bytes in one block, which begins with the first entry. */
static size_t
size_of(const struct idem_metadata *trailers, size_t *n)
{
    const struct idem_metadata_entry *entry;
    size_t size = 0;

    *n = 0;
    for (entry = trailers->first; entry; entry = entry->next) {
        size += sizeof *entry + entry->name.size + entry->value.size;
        *n += 1;
    }
    return size;
}

static struct idem_bytes
put(uint8_t **at, struct idem_bytes bytes)
{
    struct idem_bytes copy = {*at, bytes.size};

    if (bytes.size > 0)
        memcpy(*at, bytes.data, bytes.size);
    *at += bytes.size;
    return copy;
}

void
channel_copy_trailers(struct idem_metadata *copy,
                      const struct idem_metadata *trailers)
{
    const struct idem_metadata_entry *entry;
    size_t n, size = size_of(trailers, &n);
    struct idem_metadata_entry *next = n > 0 ? malloc(size) : NULL;
    uint8_t *at = (uint8_t *)(next + n);

    IDEM_ASSERT(next || n == 0);
    *copy = (struct idem_metadata){.size = trailers->size};
    copy->last = &copy->first;
    for (entry = trailers->first; entry; entry = entry->next, next++) {
        *next = (struct idem_metadata_entry){
            .name = put(&at, entry->name),
            .value = put(&at, entry->value),
        };
        *copy->last = next;
        copy->last = &next->next;
    }
}

void
idem_trailers_free(struct idem_metadata *trailers)
{
    if (!trailers)
        return;
    free(trailers->first);
    *trailers = (struct idem_metadata){0};
}

const struct idem_metadata *
idem_call_trailers(const struct idem_call *call)
{
    return &call->trailers;
}
