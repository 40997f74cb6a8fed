#include "message_wire.h"

#define NUMBER_MAX ((UINT64_C(1) << 29) - 1)

bool
wire_read_long_varint(struct wire_reader *reader, uint64_t *value)
{
    uint64_t read = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (wire_at_end(reader))
            return false;

        uint8_t byte = *reader->at++;

        if (shift == 63 && byte > 1)
            return false;
        read |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *value = read;
            return true;
        }
    }
    return false;
}

static bool
read_fixed(struct wire_reader *reader, unsigned size, uint64_t *value)
{
    if ((size_t)(reader->end - reader->at) < size)
        return false;
    *value = 0;
    for (unsigned i = 0; i < size; i++)
        *value |= (uint64_t)reader->at[i] << (8 * i);
    reader->at += size;
    return true;
}

static bool
read_bytes(struct wire_reader *reader, struct idem_bytes *bytes)
{
    uint64_t size;

    if (!wire_read_varint(reader, &size) ||
        size > (uint64_t)(reader->end - reader->at))
        return false;
    *bytes = (struct idem_bytes){reader->at, (size_t)size};
    reader->at += size;
    return true;
}

const char *
wire_read_value(struct wire_reader *reader, struct wire_field *to)
{
    const uint8_t *start = reader->at;
    const char *wrong = NULL;

    switch (to->type) {
    case WIRE_VARINT:
        if (!wire_read_varint(reader, &to->value))
            wrong = "a varint that is cut or too long";
        break;
    case WIRE_64BIT:
        if (!read_fixed(reader, 8, &to->value))
            wrong = "a 64-bit value that is cut";
        break;
    case WIRE_32BIT:
        if (!read_fixed(reader, 4, &to->value))
            wrong = "a 32-bit value that is cut";
        break;
    case WIRE_BYTES:
        if (!read_bytes(reader, &to->bytes))
            wrong = "a length that is cut or over the end";
        break;
    case WIRE_GROUP:
    case WIRE_GROUP_END:
        wrong = "a group, which is not supported";
        break;
    }
    to->raw = (struct idem_bytes){start, (size_t)(reader->at - start)};
    return wrong;
}

const char *
wire_read_field(struct wire_reader *reader, struct wire_field *to)
{
    const uint8_t *start = reader->at;
    uint64_t tag;

    if (!wire_read_varint(reader, &tag) || reader->at - start > 5)
        return "a tag that is cut or too long";
    if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
        return "a field number that cannot be";
    if ((tag & 7) > WIRE_32BIT)
        return "a wire type that does not exist";
    to->number = (uint32_t)(tag >> 3);
    to->type = (enum wire_type)(tag & 7);
    return wire_read_value(reader, to);
}
