#include "header_wire.h"

/* Field numbers of EndHeader. */
enum {
    END_STATUS = 1,
    END_EFFECT = 2,
    END_FINAL = 3,
    END_MESSAGE = 4,
    END_REASON = 5,
    END_FIRST_AT_MS = 6,
    END_RETRY_AFTER_MS = 7,
    END_SERVER_TIME_MS = 8,
    END_TRAILERS = 9,
    END_REBUILT = 10,
    END_WATERMARK = 11,
    END_EXECUTIONS = 12,
};

size_t
header_end_write(uint8_t *bytes, size_t room, const struct header_end *end,
                 const struct idem_metadata *trailers)
{
    struct header_writer writer = {bytes, bytes + room};

    header_put_varint(&writer, END_STATUS, end->status);
    header_put_varint(&writer, END_EFFECT, end->effect);
    header_put_varint(&writer, END_FINAL, end->final);
    header_put_bytes(&writer, END_MESSAGE, end->message);
    header_put_bytes(&writer, END_REASON, end->reason);
    header_put_varint(&writer, END_FIRST_AT_MS, (uint64_t)end->first_at_ms);
    if (end->has_retry_after)
        header_put_present(&writer, END_RETRY_AFTER_MS, end->retry_after_ms);
    header_put_varint(&writer, END_SERVER_TIME_MS,
                      (uint64_t)end->server_time_ms);
    header_put_varint(&writer, END_REBUILT, end->rebuilt);
    header_put_varint(&writer, END_WATERMARK, end->watermark);
    header_put_varint(&writer, END_EXECUTIONS, end->executions);
    header_put_metadata(&writer, END_TRAILERS, trailers);
    return (size_t)(writer.at - bytes);
}

static void
take_varint(struct header_end *end, const struct header_field *field)
{
    switch (field->number) {
    case END_STATUS:
        end->status = (uint32_t)field->varint;
        break;
    case END_EFFECT:
        end->effect = (uint32_t)field->varint;
        break;
    case END_FINAL:
        end->final = field->varint != 0;
        break;
    case END_FIRST_AT_MS:
        end->first_at_ms = (int64_t)field->varint;
        break;
    case END_RETRY_AFTER_MS:
        end->has_retry_after = true;
        end->retry_after_ms = field->varint;
        break;
    case END_SERVER_TIME_MS:
        end->server_time_ms = (int64_t)field->varint;
        break;
    case END_REBUILT:
        end->rebuilt = field->varint != 0;
        break;
    case END_WATERMARK:
        end->watermark = field->varint;
        break;
    case END_EXECUTIONS:
        end->executions = (uint32_t)field->varint;
        break;
    default:
        break;
    }
}

bool
header_end_read(struct idem_bytes bytes, struct header_end *end)
{
    struct header_reader reader = header_reader_of(bytes);
    struct header_field field;
    int more;

    *end = (struct header_end){0};
    for (;;) {
        const uint8_t *from = reader.at;

        more = header_next_field(&reader, &field);
        if (more <= 0)
            return more == 0;
        if (field.type == HEADER_VARINT)
            take_varint(end, &field);
        else if (field.type == HEADER_BYTES && field.number == END_MESSAGE)
            end->message = field.bytes;
        else if (field.type == HEADER_BYTES && field.number == END_REASON)
            end->reason = field.bytes;
        else if (field.type == HEADER_BYTES && field.number == END_TRAILERS)
            header_note_entry(&end->trailers, from, &reader);
    }
}

enum idem_status
header_end_trailers(struct idem_bytes bytes, struct idem_metadata *trailers,
                    struct idem_arena *arena, struct idem_error *err)
{
    return header_read_metadata(bytes, END_TRAILERS, trailers, arena, err);
}
