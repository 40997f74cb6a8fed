#include "outbox.h"

#include <stdlib.h>
#include <string.h>

#define HALF_FIRST 4096   /* bytes */
#define HALF_KEEP 1048576 /* a larger half is given back after its flight */

void
outbox_init(struct outbox *outbox)
{
    *outbox = (struct outbox){0};
}

static void
release_bigs(struct outbox_half *half)
{
    for (unsigned i = 0; i < half->n_bigs; i++)
        half->bigs[i].hold.release(half->bigs[i].hold.with);
    half->n_bigs = 0;
}

static void
half_fini(struct outbox_half *half)
{
    release_bigs(half);
    free(half->bytes);
    free(half->bigs);
}

void
outbox_fini(struct outbox *outbox)
{
    half_fini(&outbox->filling);
    half_fini(&outbox->flying);
}

static bool
reserve_bytes(struct outbox_half *half, size_t more)
{
    size_t room = half->room ? half->room : HALF_FIRST;
    uint8_t *bytes;

    if (half->room - half->size >= more)
        return true;
    while (room - half->size < more)
        room *= 2;
    bytes = realloc(half->bytes, room);
    if (!bytes)
        return false;
    half->bytes = bytes;
    half->room = room;
    return true;
}

static bool
reserve_big(struct outbox_half *half)
{
    unsigned room = half->bigs_room ? half->bigs_room * 2 : 4;
    struct outbox_big *bigs;

    if (half->n_bigs < half->bigs_room)
        return true;
    bigs = realloc(half->bigs, room * sizeof *bigs);
    if (!bigs)
        return false;
    half->bigs = bigs;
    half->bigs_room = room;
    return true;
}

/* So many of them were written behind the half's bytes. */
static void
count(struct outbox *outbox, size_t size)
{
    struct outbox_half *half = &outbox->filling;

    half->size += size;
    half->total += size;
    outbox->appended += size;
}

static uint8_t *
put(uint8_t *at, struct idem_bytes bytes)
{
    if (bytes.size > 0)
        memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

static void
refer(struct outbox *outbox, struct idem_bytes bytes, struct outbox_hold hold)
{
    struct outbox_half *half = &outbox->filling;

    hold.retain(hold.with);
    half->bigs[half->n_bigs++] = (struct outbox_big){half->size, bytes, hold};
    half->total += bytes.size;
    outbox->appended += bytes.size;
}

bool
outbox_append_bytes(struct outbox *outbox, struct idem_bytes bytes)
{
    struct outbox_half *half = &outbox->filling;

    if (!reserve_bytes(half, bytes.size))
        return false;
    (void)put(half->bytes + half->size, bytes);
    count(outbox, bytes.size);
    return true;
}

static bool
is_referred_to(struct idem_bytes message, struct outbox_hold hold)
{
    return hold.release && message.size > OUTBOX_COPY_MAX;
}

/* Room for a front that is copied and a message behind it. NULL: out of memory;
 * else where it is. */
static uint8_t *
make_room(struct outbox *outbox, size_t front, struct idem_bytes message,
          struct outbox_hold hold)
{
    struct outbox_half *half = &outbox->filling;
    bool refers = is_referred_to(message, hold);

    if (!reserve_bytes(half, refers ? front : front + message.size))
        return NULL;
    if (refers && !reserve_big(half))
        return NULL;
    return half->bytes + half->size;
}

/* The front stands there; the message follows. */
static void
end_append(struct outbox *outbox, size_t front, struct idem_bytes message,
           struct outbox_hold hold)
{
    struct outbox_half *half = &outbox->filling;

    if (is_referred_to(message, hold)) {
        count(outbox, front);
        refer(outbox, message, hold);
        return;
    }
    (void)put(half->bytes + half->size + front, message);
    count(outbox, front + message.size);
}

bool
outbox_append_parts(struct outbox *outbox, const struct idem_bytes *parts,
                    unsigned n, struct idem_bytes message,
                    struct outbox_hold hold)
{
    size_t front = 0;
    uint8_t *at;

    for (unsigned i = 0; i < n; i++)
        front += parts[i].size;
    at = make_room(outbox, front, message, hold);
    if (!at)
        return false;
    for (unsigned i = 0; i < n; i++)
        at = put(at, parts[i]);
    end_append(outbox, front, message, hold);
    return true;
}

bool
outbox_append(struct outbox *outbox, const struct frame *frame,
              struct outbox_hold hold)
{
    size_t front = FRAME_HEAD + frame->header.size;
    uint8_t *at = make_room(outbox, front, frame->payload, hold);

    if (!at)
        return false;
    frame_head_write(at, frame);
    (void)put(at + FRAME_HEAD, frame->header);
    end_append(outbox, front, frame->payload, hold);
    return true;
}

void
outbox_take_off(struct outbox *outbox)
{
    struct outbox_half half = outbox->flying;

    outbox->flying = outbox->filling;
    outbox->filling = half;
    outbox->filling.total = 0;
    outbox->flown = 0;
    outbox->next_big = 0;
    outbox->taken_off += outbox->flying.total;
}

void
outbox_grounded(struct outbox *outbox)
{
    outbox->taken_off -= outbox->flying.total;
}

/* The copied bytes up to the next big message. */
static struct idem_bytes
next_copied(struct outbox *outbox)
{
    const struct outbox_half *half = &outbox->flying;
    size_t end = outbox->next_big < half->n_bigs
                     ? half->bigs[outbox->next_big].at
                     : half->size;
    struct idem_bytes part = {half->bytes + outbox->flown, end - outbox->flown};

    outbox->flown = end;
    return part;
}

unsigned
outbox_parts(struct outbox *outbox, struct idem_bytes *parts, unsigned room)
{
    const struct outbox_half *half = &outbox->flying;
    unsigned n = 0;

    while (n < room) {
        bool more = outbox->next_big < half->n_bigs;

        if (outbox->flown <
            (more ? half->bigs[outbox->next_big].at : half->size))
            parts[n++] = next_copied(outbox);
        else if (more)
            parts[n++] = half->bigs[outbox->next_big++].bytes;
        else
            break;
    }
    return n;
}

void
outbox_land(struct outbox *outbox)
{
    struct outbox_half *half = &outbox->flying;

    release_bigs(half);
    half->size = 0;
    if (half->room > HALF_KEEP) {
        free(half->bytes);
        half->bytes = NULL;
        half->room = 0;
    }
}
