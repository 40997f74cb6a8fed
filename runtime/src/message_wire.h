#ifndef MESSAGE_WIRE_H
#define MESSAGE_WIRE_H

#include <idem/base.h>

/* The wire format of protobuf, one field at a time; nothing of descriptors.
 * https://protobuf.dev/programming-guides/encoding */

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_64BIT = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_GROUP_END = 4,
    WIRE_32BIT = 5,
};

struct wire_reader {
    const uint8_t *at, *end;
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;          /* VARINT, 64BIT, 32BIT */
    struct idem_bytes bytes; /* BYTES: what is inside */
    struct idem_bytes raw;   /* all after the tag, also BYTES' length */
};

static inline struct wire_reader
wire_reader_of(struct idem_bytes bytes)
{
    const uint8_t *end = bytes.size ? bytes.data + bytes.size : bytes.data;

    return (struct wire_reader){bytes.data, end};
}

static inline bool
wire_at_end(const struct wire_reader *reader)
{
    return reader->at == reader->end;
}

/* At most ten bytes and 64 bits; most are of one byte. */
bool wire_read_long_varint(struct wire_reader *reader, uint64_t *value);

static inline bool
wire_read_varint(struct wire_reader *reader, uint64_t *value)
{
    if (wire_at_end(reader) || *reader->at >= 0x80)
        return wire_read_long_varint(reader, value);
    *value = *reader->at++;
    return true;
}

/* A value of that type without its tag, as in a packed field. NULL, or what is
 * wrong: "a length that is over the end". Not for groups. */
const char *wire_read_value(struct wire_reader *reader, struct wire_field *to);

/* The next field. NULL, or what is wrong. */
const char *wire_read_field(struct wire_reader *reader, struct wire_field *to);

#endif
