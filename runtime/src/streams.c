#include "streams.h"

#include <stdlib.h>

#define SLOTS_FIRST 16

void
streams_fini(struct streams *streams)
{
    free(streams->slots);
    *streams = (struct streams){0};
}

/* Ids come one after another: each at its own number they would lie in one row,
 * and taking one out would walk the whole row to its end. */
static uint32_t
home_of(const struct streams *streams, uint32_t id)
{
    return (id * UINT32_C(2654435769) >> 7) & streams->mask;
}

static uint32_t
slot_of(const struct streams *streams, uint32_t id)
{
    uint32_t at = home_of(streams, id);

    while (streams->slots[at].id != id && streams->slots[at].id != 0)
        at = (at + 1) & streams->mask;
    return at;
}

static bool
grow(struct streams *streams)
{
    struct streams old = *streams;
    uint32_t n = old.slots ? (old.mask + 1) * 2 : SLOTS_FIRST;

    streams->slots = calloc(n, sizeof *streams->slots);
    if (!streams->slots) {
        *streams = old;
        return false;
    }
    streams->mask = n - 1;
    for (uint32_t i = 0; old.slots && i <= old.mask; i++)
        if (old.slots[i].id)
            streams->slots[slot_of(streams, old.slots[i].id)] = old.slots[i];
    free(old.slots);
    return true;
}

bool
streams_add(struct streams *streams, uint32_t id, void *what)
{
    /* Half full at most, so that a probe is short and always ends. */
    if ((!streams->slots || streams->count * 2 > streams->mask) &&
        !grow(streams))
        return false;
    streams->slots[slot_of(streams, id)] = (struct streams_slot){id, what};
    streams->count++;
    return true;
}

void *
streams_find(const struct streams *streams, uint32_t id)
{
    return streams->slots && id ? streams->slots[slot_of(streams, id)].what
                                : NULL;
}

/* Close the gap, so that no probe stops short of what is behind it. */
static void
clear(struct streams *streams, uint32_t gap)
{
    uint32_t mask = streams->mask;
    uint32_t at = gap;

    for (;;) {
        uint32_t home;

        at = (at + 1) & mask;
        if (streams->slots[at].id == 0)
            break;
        home = home_of(streams, streams->slots[at].id);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        streams->slots[gap] = streams->slots[at];
        gap = at;
    }
    streams->slots[gap] = (struct streams_slot){0, NULL};
    streams->count--;
}

void *
streams_take(struct streams *streams, uint32_t id)
{
    void *what = streams_find(streams, id);

    if (what)
        clear(streams, slot_of(streams, id));
    return what;
}

void *
streams_take_above(struct streams *streams, uint32_t id, uint32_t *at)
{
    if (streams->count == 0)
        return NULL;
    /* What closes the gap comes from behind it, so the slot is looked at again.
     */
    for (; *at <= streams->mask; ++*at) {
        void *what = streams->slots[*at].what;

        if (streams->slots[*at].id > id) {
            clear(streams, *at);
            return what;
        }
    }
    return NULL;
}

void *
streams_next_above(const struct streams *streams, uint32_t id, uint32_t *at)
{
    if (streams->count == 0)
        return NULL;
    for (; *at <= streams->mask; ++*at)
        if (streams->slots[*at].id > id)
            return streams->slots[(*at)++].what;
    return NULL;
}

void **
streams_all(const struct streams *streams, uint32_t *n)
{
    void **all = calloc((size_t)streams->count + 1, sizeof *all);

    IDEM_ASSERT(all);
    *n = 0;
    for (uint32_t i = 0; streams->slots && i <= streams->mask; i++)
        if (streams->slots[i].id)
            all[(*n)++] = streams->slots[i].what;
    return all;
}
