#ifndef HEADER_WIRE_H
#define HEADER_WIRE_H

#include "header.h"

/* The four wire types of protobuf, as much as the headers need. */

enum header_type {
    HEADER_VARINT = 0,
    HEADER_FIXED64 = 1,
    HEADER_BYTES = 2,
    HEADER_FIXED32 = 5,
};

struct header_writer {
    uint8_t *at, *end;
};

struct header_reader {
    const uint8_t *at, *end;
};

struct header_field {
    uint32_t number;
    enum header_type type;
    uint64_t varint;         /* HEADER_VARINT */
    struct idem_bytes bytes; /* HEADER_BYTES */
};

/* Also when it is the default. */
void header_put_present(struct header_writer *writer, uint32_t number,
                        uint64_t value);
void header_put_some(struct header_writer *writer, uint32_t number,
                     struct idem_bytes value);

/* A field of the default value is left out, as proto3 has it. */
static inline void
header_put_varint(struct header_writer *writer, uint32_t number, uint64_t value)
{
    if (value)
        header_put_present(writer, number, value);
}

static inline void
header_put_bytes(struct header_writer *writer, uint32_t number,
                 struct idem_bytes value)
{
    if (value.size > 0)
        header_put_some(writer, number, value);
}

void header_put_metadata(struct header_writer *writer, uint32_t number,
                         const struct idem_metadata *metadata);

/* An empty header may have no address. */
static inline struct header_reader
header_reader_of(struct idem_bytes bytes)
{
    const uint8_t *end = bytes.size > 0 ? bytes.data + bytes.size : bytes.data;

    return (struct header_reader){bytes.data, end};
}

/* 1: a field. 0: the end. -1: broken (cut, over-long, a group, number 0). */
int header_next_field(struct header_reader *reader, struct header_field *field);

/* The field just read, which began there, is one of many: widen what holds them
 * all, so that header_read_metadata need not look at what is before. */
void header_note_entry(struct idem_bytes *entries, const uint8_t *from,
                       const struct header_reader *reader);

/* All entries of a field number. */
enum idem_status header_read_metadata(struct idem_bytes bytes, uint32_t number,
                                      struct idem_metadata *metadata,
                                      struct idem_arena *arena,
                                      struct idem_error *err) IDEM_MUST_CHECK;

#endif
