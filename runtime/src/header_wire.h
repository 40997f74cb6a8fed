#ifndef HEADER_WIRE_H
#define HEADER_WIRE_H

#include "header.h"

/* The four wire types of protobuf, as much as the headers need. */

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
};

struct wire_writer {
    uint8_t *at, *end;
};

struct wire_reader {
    const uint8_t *at, *end;
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t varint;         /* WIRE_VARINT */
    struct idem_bytes bytes; /* WIRE_BYTES */
};

/* Also when it is the default. */
void header_put_present(struct wire_writer *writer, uint32_t number,
                        uint64_t value);
void header_put_some(struct wire_writer *writer, uint32_t number,
                     struct idem_bytes value);

/* A field of the default value is left out, as proto3 has it. */
static inline void
header_put_varint(struct wire_writer *writer, uint32_t number, uint64_t value)
{
    if (value)
        header_put_present(writer, number, value);
}

static inline void
header_put_bytes(struct wire_writer *writer, uint32_t number,
                 struct idem_bytes value)
{
    if (value.size > 0)
        header_put_some(writer, number, value);
}

void header_put_metadata(struct wire_writer *writer, uint32_t number,
                         const struct idem_metadata *metadata);

/* An empty header may have no address. */
static inline struct wire_reader
header_reader_of(struct idem_bytes bytes)
{
    const uint8_t *end = bytes.size > 0 ? bytes.data + bytes.size : bytes.data;

    return (struct wire_reader){bytes.data, end};
}

/* 1: a field. 0: the end. -1: broken (cut, over-long, a group, number 0). */
int header_next_field(struct wire_reader *reader, struct wire_field *field);

/* The field just read, which began there, is one of many: widen what holds them
 * all, so that header_read_metadata need not look at what is before. */
void header_note_entry(struct idem_bytes *entries, const uint8_t *from,
                       const struct wire_reader *reader);

/* All entries of a field number. */
enum idem_status header_read_metadata(struct idem_bytes bytes, uint32_t number,
                                      struct idem_metadata *metadata,
                                      struct idem_arena *arena,
                                      struct idem_error *err) IDEM_MUST_CHECK;

#endif
