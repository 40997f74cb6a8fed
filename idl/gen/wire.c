#include "wire.h"

#include <string.h>

#define VARINT_MAX 10 /* bytes of 64 bits */

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

static bool
varint(struct cursor *cursor, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (cursor->at == cursor->end)
            return false;
        *value |= (uint64_t)(*cursor->at & 0x7f) << shift;
        if (*cursor->at++ < 0x80)
            return true;
    }
    return false;
}

static bool
skip(struct cursor *cursor, uint64_t size)
{
    if (size > (uint64_t)(cursor->end - cursor->at))
        return false;
    cursor->at += size;
    return true;
}

/* One field; its payload when it is length-delimited, else an empty one. */
static bool
next_field(struct cursor *cursor, unsigned *number,
           ProtobufCBinaryData *payload)
{
    uint64_t tag, size;

    if (!varint(cursor, &tag))
        return false;
    *number = (unsigned)(tag >> 3);
    *payload = (ProtobufCBinaryData){0};
    switch (tag & 7) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        return varint(cursor, &size);
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        return skip(cursor, 8);
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        return skip(cursor, 4);
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!varint(cursor, &size))
            return false;
        *payload =
            (ProtobufCBinaryData){size, (uint8_t *)(uintptr_t)cursor->at};
        return skip(cursor, size);
    default:
        return false;
    }
}

static void
append(struct pool *pool, ProtobufCBinaryData *joined,
       const ProtobufCBinaryData *more)
{
    joined->data =
        pool_grow(pool, joined->data, joined->len, joined->len + more->len);
    if (more->len)
        memcpy(joined->data + joined->len, more->data, more->len);
    joined->len += more->len;
}

bool
wire_join(struct pool *pool, const ProtobufCBinaryData *bytes, unsigned number,
          ProtobufCBinaryData *joined)
{
    struct cursor cursor = {bytes->data, bytes->data + bytes->len};
    ProtobufCBinaryData payload, all = {0};
    unsigned found;
    bool any = false;

    while (cursor.at < cursor.end && next_field(&cursor, &found, &payload)) {
        if (found != number || !payload.data)
            continue;
        append(pool, &all, &payload);
        any = true;
    }
    if (any)
        *joined = all;
    return any;
}

bool
wire_join_unknown(struct pool *pool, const ProtobufCMessage *message,
                  unsigned number, ProtobufCBinaryData *joined)
{
    ProtobufCBinaryData all = {0};
    bool any = false;

    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *field = &message->unknown_fields[i];
        struct cursor cursor = {field->data, field->data + field->len};
        ProtobufCBinaryData payload;
        uint64_t size;

        /* libprotobuf-c keeps the length in front of the payload. */
        if (field->tag != number ||
            field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED ||
            !varint(&cursor, &size))
            continue;
        payload.len = (size_t)(cursor.end - cursor.at);
        payload.data = field->data + (field->len - payload.len);
        append(pool, &all, &payload);
        any = true;
    }
    if (any)
        *joined = all;
    return any;
}

void
wire_strip_unknown(ProtobufCMessage *message, unsigned number)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < message->n_unknown_fields; i++)
        if (message->unknown_fields[i].tag != number)
            message->unknown_fields[kept++] = message->unknown_fields[i];
    message->n_unknown_fields = kept;
}

static size_t
write_varint(uint8_t *at, uint64_t value)
{
    size_t n = 0;

    for (; value > 0x7f; value >>= 7)
        at[n++] = (uint8_t)(value | 0x80);
    at[n++] = (uint8_t)value;
    return n;
}

void
wire_add_unknown(struct pool *pool, ProtobufCMessage *message, unsigned number,
                 const void *bytes, size_t size)
{
    unsigned n = message->n_unknown_fields;
    ProtobufCMessageUnknownField *fields =
        pool_grow(pool, message->unknown_fields, n * sizeof(*fields),
                  (n + 1) * sizeof(*fields));
    uint8_t *data = pool_alloc(pool, VARINT_MAX + size);
    size_t length = write_varint(data, size);

    memcpy(data + length, bytes, size);
    fields[n] = (ProtobufCMessageUnknownField){
        .tag = number,
        .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
        .len = length + size,
        .data = data};
    message->unknown_fields = fields;
    message->n_unknown_fields = n + 1;
}
