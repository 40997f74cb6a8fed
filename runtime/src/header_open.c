#include "header_wire.h"

/* Field numbers of OpenHeader. */
enum {
    OPEN_METHOD = 1,
    OPEN_METHOD_ID = 2,
    OPEN_TIMEOUT_US = 3,
    OPEN_KEY = 4,
    OPEN_ATTEMPT = 5,
    OPEN_METADATA = 6,
    OPEN_ACK_BELOW = 7,
    OPEN_STREAMS = 8,
    OPEN_RESUME_TOKEN = 9,
    OPEN_RESUME_AFTER = 10,
    OPEN_PLAIN_REPLY = 11,
};

size_t
header_open_write(uint8_t *bytes, size_t room, const struct header_open *open,
                  const struct idem_metadata *metadata)
{
    struct header_writer writer = {bytes, bytes + room};

    header_put_bytes(&writer, OPEN_METHOD, open->method);
    header_put_varint(&writer, OPEN_METHOD_ID, open->method_id);
    if (open->has_timeout)
        header_put_present(&writer, OPEN_TIMEOUT_US, open->timeout_us);
    header_put_bytes(&writer, OPEN_KEY, open->key);
    if (open->attempt > 1)
        header_put_varint(&writer, OPEN_ATTEMPT, open->attempt);
    header_put_varint(&writer, OPEN_ACK_BELOW, open->ack_below);
    header_put_varint(&writer, OPEN_STREAMS, open->streams);
    header_put_bytes(&writer, OPEN_RESUME_TOKEN, open->resume_token);
    header_put_varint(&writer, OPEN_RESUME_AFTER, open->resume_after);
    header_put_varint(&writer, OPEN_PLAIN_REPLY, open->plain_reply);
    header_put_metadata(&writer, OPEN_METADATA, metadata);
    return (size_t)(writer.at - bytes);
}

static void
take_varint(struct header_open *open, const struct header_field *field)
{
    switch (field->number) {
    case OPEN_METHOD_ID:
        open->method_id = (uint32_t)field->varint;
        break;
    case OPEN_TIMEOUT_US:
        open->has_timeout = true;
        open->timeout_us = field->varint;
        break;
    case OPEN_ATTEMPT:
        open->attempt = (uint32_t)field->varint;
        break;
    case OPEN_ACK_BELOW:
        open->ack_below = field->varint;
        break;
    case OPEN_STREAMS:
        open->streams = (uint32_t)field->varint;
        break;
    case OPEN_RESUME_AFTER:
        open->resume_after = field->varint;
        break;
    case OPEN_PLAIN_REPLY:
        open->plain_reply = field->varint != 0;
        break;
    default:
        break;
    }
}

static void
take_bytes(struct header_open *open, const struct header_field *field)
{
    switch (field->number) {
    case OPEN_METHOD:
        open->method = field->bytes;
        break;
    case OPEN_KEY:
        open->key = field->bytes;
        break;
    case OPEN_RESUME_TOKEN:
        open->resume_token = field->bytes;
        break;
    default:
        break;
    }
}

bool
header_open_read(struct idem_bytes bytes, struct header_open *open)
{
    struct header_reader reader = header_reader_of(bytes);
    struct header_field field;
    int more;

    *open = (struct header_open){0};
    for (;;) {
        const uint8_t *from = reader.at;

        more = header_next_field(&reader, &field);
        if (more <= 0)
            return more == 0;
        if (field.type == HEADER_VARINT)
            take_varint(open, &field);
        else if (field.type == HEADER_BYTES && field.number == OPEN_METADATA)
            header_note_entry(&open->metadata, from, &reader);
        else if (field.type == HEADER_BYTES)
            take_bytes(open, &field);
    }
}

enum idem_status
header_open_metadata(struct idem_bytes bytes, struct idem_metadata *metadata,
                     struct idem_arena *arena, struct idem_error *err)
{
    return header_read_metadata(bytes, OPEN_METADATA, metadata, arena, err);
}
