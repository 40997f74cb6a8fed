#include "backlog.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 1024
#define HEAD 5 /* size, squeezed */

void
backlog_fini(struct backlog *backlog)
{
    free(backlog->bytes);
    *backlog = (struct backlog){0};
}

static bool
reserve(struct backlog *backlog, size_t more)
{
    size_t room = backlog->room ? backlog->room : ROOM_FIRST;
    uint8_t *bytes;

    while (room - backlog->size < more)
        room *= 2;
    if (room == backlog->room)
        return true;
    bytes = realloc(backlog->bytes, room);
    if (!bytes)
        return false;
    backlog->bytes = bytes;
    backlog->room = room;
    return true;
}

bool
backlog_put(struct backlog *backlog, struct idem_bytes message, bool squeezed)
{
    uint32_t size = (uint32_t)message.size;

    if (!reserve(backlog, HEAD + message.size))
        return false;
    memcpy(backlog->bytes + backlog->size, &size, sizeof size);
    backlog->bytes[backlog->size + sizeof size] = squeezed;
    backlog->size += HEAD;
    if (size > 0)
        memcpy(backlog->bytes + backlog->size, message.data, size);
    backlog->size += size;
    return true;
}

bool
backlog_next(struct backlog *backlog, struct idem_bytes *message,
             bool *squeezed)
{
    uint32_t size;

    if (backlog_is_through(backlog))
        return false;
    memcpy(&size, backlog->bytes + backlog->at, sizeof size);
    *squeezed = backlog->bytes[backlog->at + sizeof size];
    message->data = backlog->bytes + backlog->at + HEAD;
    message->size = size;
    backlog->at += HEAD + size;
    return true;
}

/* So that what was dropped is not most of the buffer: each byte is moved less
 * than once for one that was dropped. */
static void
close_up(struct backlog *backlog)
{
    if (backlog->from <= backlog->size / 2)
        return;
    memmove(backlog->bytes, backlog->bytes + backlog->from,
            backlog->size - backlog->from);
    backlog->size -= backlog->from;
    backlog->at -= backlog->from;
    backlog->from = 0;
}

void
backlog_drop(struct backlog *backlog)
{
    uint32_t size;

    IDEM_ASSERT(backlog->from < backlog->at);
    memcpy(&size, backlog->bytes + backlog->from, sizeof size);
    backlog->from += HEAD + size;
    close_up(backlog);
}

void
backlog_clear(struct backlog *backlog, size_t keep)
{
    if (backlog->room > keep)
        backlog_fini(backlog);
    backlog->size = backlog->at = backlog->from = 0;
}
