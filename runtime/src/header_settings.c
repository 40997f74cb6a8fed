#include "header_wire.h"

/* Field numbers of Settings, Goaway, WindowHeader and MessageHeader. */
enum {
    SETTINGS_VERSION = 1,
    SETTINGS_MAX_MESSAGE = 2,
    SETTINGS_MAX_STREAMS = 3,
    SETTINGS_TIME_MS = 4,
    SETTINGS_IDENTITY = 5,
    SETTINGS_STREAM_WINDOW = 6,
    SETTINGS_CODECS = 7,
    WINDOW_CREDIT = 1,
    WINDOW_WATERMARK = 2,
    MESSAGE_TOKEN = 1,
    MESSAGE_ACK_BELOW = 2,
    GOAWAY_LAST_STREAM = 1,
    GOAWAY_REASON = 2,
};

size_t
header_settings_write(uint8_t *bytes, size_t room,
                      const struct header_settings *settings)
{
    struct header_writer writer = {bytes, bytes + room};

    header_put_varint(&writer, SETTINGS_VERSION, settings->version);
    header_put_varint(&writer, SETTINGS_MAX_MESSAGE, settings->max_message);
    header_put_varint(&writer, SETTINGS_MAX_STREAMS, settings->max_streams);
    header_put_varint(&writer, SETTINGS_TIME_MS, (uint64_t)settings->time_ms);
    header_put_bytes(&writer, SETTINGS_IDENTITY, settings->identity);
    header_put_varint(&writer, SETTINGS_STREAM_WINDOW, settings->stream_window);
    header_put_varint(&writer, SETTINGS_CODECS, settings->codecs);
    return (size_t)(writer.at - bytes);
}

bool
header_settings_read(struct idem_bytes bytes, struct header_settings *settings)
{
    struct header_reader reader = header_reader_of(bytes);
    struct header_field field;
    int more;

    *settings = (struct header_settings){0};
    while ((more = header_next_field(&reader, &field)) > 0) {
        if (field.type == HEADER_BYTES && field.number == SETTINGS_IDENTITY)
            settings->identity = field.bytes;
        else if (field.type != HEADER_VARINT)
            continue;
        else if (field.number == SETTINGS_VERSION)
            settings->version = (uint32_t)field.varint;
        else if (field.number == SETTINGS_MAX_MESSAGE)
            settings->max_message = (uint32_t)field.varint;
        else if (field.number == SETTINGS_MAX_STREAMS)
            settings->max_streams = (uint32_t)field.varint;
        else if (field.number == SETTINGS_STREAM_WINDOW)
            settings->stream_window = (uint32_t)field.varint;
        else if (field.number == SETTINGS_TIME_MS)
            settings->time_ms = (int64_t)field.varint;
        else if (field.number == SETTINGS_CODECS)
            settings->codecs = (uint32_t)field.varint;
    }
    return more == 0;
}

/* A header of a field of bytes and a number. */
static bool
read_both(struct idem_bytes header, uint32_t bytes_field,
          struct idem_bytes *bytes, uint32_t number_field, uint64_t *number)
{
    struct header_reader reader = header_reader_of(header);
    struct header_field field;
    int more;

    *bytes = (struct idem_bytes){NULL, 0};
    *number = 0;
    while ((more = header_next_field(&reader, &field)) > 0) {
        if (field.type == HEADER_BYTES && field.number == bytes_field)
            *bytes = field.bytes;
        else if (field.type == HEADER_VARINT && field.number == number_field)
            *number = field.varint;
    }
    return more == 0;
}

size_t
header_goaway_write(uint8_t *bytes, size_t room,
                    const struct header_goaway *goaway)
{
    struct header_writer writer = {bytes, bytes + room};

    header_put_varint(&writer, GOAWAY_LAST_STREAM, goaway->last_stream);
    header_put_bytes(&writer, GOAWAY_REASON, goaway->reason);
    return (size_t)(writer.at - bytes);
}

bool
header_goaway_read(struct idem_bytes bytes, struct header_goaway *goaway)
{
    uint64_t last_stream;
    bool whole = read_both(bytes, GOAWAY_REASON, &goaway->reason,
                           GOAWAY_LAST_STREAM, &last_stream);

    goaway->last_stream = (uint32_t)last_stream;
    return whole;
}

size_t
header_window_write(uint8_t *bytes, size_t room,
                    const struct header_window *window)
{
    struct header_writer writer = {bytes, bytes + room};

    header_put_varint(&writer, WINDOW_CREDIT, window->credit);
    header_put_varint(&writer, WINDOW_WATERMARK, window->watermark);
    return (size_t)(writer.at - bytes);
}

bool
header_window_read(struct idem_bytes bytes, struct header_window *window)
{
    struct header_reader reader = header_reader_of(bytes);
    struct header_field field;
    int more;

    *window = (struct header_window){0};
    while ((more = header_next_field(&reader, &field)) > 0) {
        if (field.type != HEADER_VARINT)
            continue;
        if (field.number == WINDOW_CREDIT)
            window->credit = (uint32_t)field.varint;
        else if (field.number == WINDOW_WATERMARK)
            window->watermark = field.varint;
    }
    return more == 0;
}

size_t
header_message_write(uint8_t *bytes, size_t room,
                     const struct header_message *message)
{
    struct header_writer writer = {bytes, bytes + room};

    header_put_bytes(&writer, MESSAGE_TOKEN, message->token);
    header_put_varint(&writer, MESSAGE_ACK_BELOW, message->ack_below);
    return (size_t)(writer.at - bytes);
}

bool
header_message_read(struct idem_bytes bytes, struct header_message *message)
{
    return read_both(bytes, MESSAGE_TOKEN, &message->token, MESSAGE_ACK_BELOW,
                     &message->ack_below) &&
           message->token.size <= HEADER_TOKEN_MAX;
}
