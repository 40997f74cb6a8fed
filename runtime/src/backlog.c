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

void
backlog_clear(struct backlog *backlog, size_t keep)
{
    if (backlog->room > keep)
        backlog_fini(backlog);
    backlog->size = backlog->at = 0;
}
