#include "plain.h"

#include "header_wire.h"

#include <string.h>

#define REQ 0x30
#define REP 0x31
#define LOCAL_MESSAGE 1 /* the first byte over ipc */
#define WORD 4
#define LAST_WORD 0x80 /* of the first byte: the route ends with this word */

enum {
    CALL_HEADER = 1,
    CALL_MESSAGE = 2,
    ANSWER_HEADER = 1,
    ANSWER_MESSAGE = 2,
};

bool
plain_preface_check(const uint8_t bytes[FRAME_PREFACE])
{
    static const uint8_t req[FRAME_PREFACE] = {0, 'S', 'P', 0, 0, REQ, 0, 0};

    return memcmp(bytes, req, FRAME_PREFACE) == 0;
}

void
plain_preface_write(uint8_t bytes[FRAME_PREFACE])
{
    static const uint8_t rep[FRAME_PREFACE] = {0, 'S', 'P', 0, 0, REP, 0, 0};

    memcpy(bytes, rep, FRAME_PREFACE);
}

size_t
plain_head_size(bool local)
{
    return sizeof(uint64_t) + local;
}

bool
plain_head_read(const uint8_t *bytes, bool local, uint64_t *size)
{
    *size = 0;
    if (local && *bytes++ != LOCAL_MESSAGE)
        return false;
    for (unsigned i = 0; i < sizeof(uint64_t); i++)
        *size = *size << 8 | bytes[i];
    return *size <= INT64_MAX;
}

static uint8_t *
put_head(uint8_t *at, bool local, uint64_t size)
{
    if (local)
        *at++ = LOCAL_MESSAGE;
    for (unsigned i = sizeof(uint64_t); i-- > 0;)
        *at++ = (uint8_t)(size >> (8 * i));
    return at;
}

bool
plain_route_read(struct idem_bytes body, struct idem_bytes *route)
{
    for (size_t at = 0; at < PLAIN_ROUTE_MAX; at += WORD) {
        if (body.size - at < WORD)
            return false;
        if (body.data[at] & LAST_WORD) {
            *route = (struct idem_bytes){body.data, at + WORD};
            return true;
        }
    }
    return false;
}

bool
plain_call_read(struct idem_bytes body, struct frame *open)
{
    struct header_reader reader = header_reader_of(body);
    struct header_field field;
    int more;

    *open = (struct frame){.type = FRAME_OPEN};
    if (!plain_route_read(body, &open->route))
        return false;
    reader.at += open->route.size;
    while ((more = header_next_field(&reader, &field)) > 0) {
        if (field.type == HEADER_BYTES && field.number == CALL_HEADER)
            open->header = field.bytes;
        else if (field.type == HEADER_BYTES && field.number == CALL_MESSAGE)
            open->payload = field.bytes;
    }
    if (more == 0 && open->header.size <= FRAME_HEADER_MAX)
        open->flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
    if (!open->payload.data)
        open->payload.data = body.data;
    return true;
}

/* A field's tag and length. */
static uint8_t *
put_field(uint8_t *at, unsigned number, uint64_t size)
{
    *at++ = (uint8_t)(number << 3 | HEADER_BYTES);
    for (; size >= 0x80; size >>= 7)
        *at++ = (uint8_t)(size | 0x80);
    *at++ = (uint8_t)size;
    return at;
}

static size_t
field_size(unsigned number, uint64_t size)
{
    uint8_t bytes[16];

    return (size_t)(put_field(bytes, number, size) - bytes) + size;
}

void
plain_answer_write(uint8_t front[2][PLAIN_FRONT_MAX], const struct frame *end,
                   bool local, struct idem_bytes parts[3])
{
    bool message = end->flags & FRAME_FLAG_MESSAGE;
    uint64_t size =
        end->route.size + field_size(ANSWER_HEADER, end->header.size);
    uint8_t *at = front[0];

    if (message)
        size += field_size(ANSWER_MESSAGE, end->payload.size);
    at = put_head(at, local, size);
    memcpy(at, end->route.data, end->route.size);
    at = put_field(at + end->route.size, ANSWER_HEADER, end->header.size);
    parts[0] = (struct idem_bytes){front[0], (size_t)(at - front[0])};
    parts[1] = end->header;
    at = front[1];
    if (message)
        at = put_field(at, ANSWER_MESSAGE, end->payload.size);
    parts[2] = (struct idem_bytes){front[1], (size_t)(at - front[1])};
}
