#include "envelope.h"

#include <stdlib.h>
#include <string.h>

#include "bench.pb-c.h"
#include "frame.h"
#include "header.h"
#include "header_wire.h"

#define METHOD_ID 1
#define HEADER_ROOM 256

/* Field numbers of wire.proto. */
enum {
    OPEN_METHOD_ID = 2,
    OPEN_TIMEOUT_US = 3,
    OPEN_METADATA = 6,
    ENTRY_NAME = 1,
    ENTRY_VALUE = 2,
};

/* Where a message is unpacked: forgotten at the next one. */
struct slab {
    size_t used;
    _Alignas(max_align_t) uint8_t bytes[SIDE_BODY_MAX + 4096];
};

static _Thread_local struct slab slab;

static void *
slab_alloc(void *with, size_t size)
{
    struct slab *own = with;
    size_t at = own->used;

    own->used += (size + 15) & ~(size_t)15;
    return own->used <= sizeof own->bytes ? own->bytes + at : NULL;
}

static void
slab_free(void *with, void *pointer)
{
    (void)with;
    (void)pointer;
}

static ProtobufCAllocator
fresh_slab(void)
{
    slab.used = 0;
    return (ProtobufCAllocator){slab_alloc, slab_free, &slab};
}

/* Head and header around a message that is packed by the caller. */
static uint8_t *
begin_frame(uint8_t *bytes, struct frame *frame, const uint8_t *header,
            size_t header_size, size_t payload_size)
{
    frame->flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
    frame->header = (struct idem_bytes){header, header_size};
    frame->payload = (struct idem_bytes){NULL, payload_size};
    frame_head_write(bytes, frame);
    memcpy(bytes + FRAME_HEAD, header, header_size);
    return bytes + FRAME_HEAD + header_size;
}

size_t
envelope_request(uint8_t *bytes, uint32_t stream, const uint8_t *body,
                 size_t size)
{
    const struct header_open open = {.method_id = METHOD_ID,
                                     .has_timeout = true,
                                     .timeout_us = SIDE_TIMEOUT_MS * 1000};
    struct idem_metadata_entry token = {NULL, idem_bytes_of(SIDE_TOKEN_NAME),
                                        idem_bytes_of(SIDE_TOKEN)};
    const struct idem_metadata metadata = {&token, NULL, 0};
    Bench__V1__Request request = BENCH__V1__REQUEST__INIT;
    struct frame frame = {.type = FRAME_OPEN, .stream = stream};
    uint8_t header[HEADER_ROOM];
    uint8_t *payload;

    request.body.data = memcpy(slab.bytes, body, size);
    request.body.len = size;
    payload =
        begin_frame(bytes, &frame, header,
                    header_open_write(header, sizeof header, &open, &metadata),
                    bench__v1__request__get_packed_size(&request));
    return (size_t)(payload - bytes) +
           bench__v1__request__pack(&request, payload);
}

static struct frame_head
read_head(const uint8_t *bytes, size_t size)
{
    struct frame_head head;

    if (size < FRAME_HEAD || !frame_head_read(bytes, &head) ||
        head.size != size - FRAME_HEAD)
        side_die("envelope", "not a frame");
    return head;
}

static bool
is_token(struct idem_bytes entry)
{
    struct header_reader reader = {entry.data, entry.data + entry.size};
    struct header_field field;
    bool name = false, value = false;

    while (header_next_field(&reader, &field) > 0) {
        if (field.number == ENTRY_NAME)
            name =
                idem_bytes_equal(field.bytes, idem_bytes_of(SIDE_TOKEN_NAME));
        else if (field.number == ENTRY_VALUE)
            value = field.bytes.size == strlen(SIDE_TOKEN);
    }
    return name && value;
}

/* One pass over the header: a call of the method, with the token and in time.
 */
static bool
is_welcome(struct idem_bytes header)
{
    struct header_reader reader = {header.data, header.data + header.size};
    struct header_field field;
    bool method = false, in_time = false, token = false;

    while (header_next_field(&reader, &field) > 0)
        switch (field.number) {
        case OPEN_METHOD_ID:
            method = field.varint == METHOD_ID;
            break;
        case OPEN_TIMEOUT_US:
            in_time = field.varint > 0;
            break;
        case OPEN_METADATA:
            token = token || is_token(field.bytes);
            break;
        default:
            break;
        }
    return method && in_time && token;
}

size_t
envelope_answer(uint8_t *bytes, const uint8_t *request, size_t size)
{
    static const struct header_end end = {.final = true};
    struct frame_head head = read_head(request, size);
    const uint8_t *at = request + FRAME_HEAD;
    ProtobufCAllocator allocator = fresh_slab();
    Bench__V1__Reply reply = BENCH__V1__REPLY__INIT;
    struct frame frame = {.type = FRAME_END, .stream = head.stream};
    uint8_t header[HEADER_ROOM];
    const Bench__V1__Request *asked;
    uint8_t *payload;

    if (!is_welcome((struct idem_bytes){at, head.header}))
        side_die("envelope", "not a call of ours");
    asked = bench__v1__request__unpack(&allocator, head.size - head.header,
                                       at + head.header);
    if (!asked)
        side_die("envelope", "not a request");
    reply.body = asked->body;
    payload = begin_frame(bytes, &frame, header,
                          header_end_write(header, sizeof header, &end, NULL),
                          bench__v1__reply__get_packed_size(&reply));
    return (size_t)(payload - bytes) + bench__v1__reply__pack(&reply, payload);
}

uint32_t
envelope_check(const uint8_t *answer, size_t size,
               const struct side_options *options)
{
    struct frame_head head = read_head(answer, size);
    const uint8_t *at = answer + FRAME_HEAD;
    ProtobufCAllocator allocator = fresh_slab();
    const Bench__V1__Reply *reply;
    struct header_end end;

    if (!header_end_read((struct idem_bytes){at, head.header}, &end) ||
        end.status != 0)
        side_die("envelope", "not an answer");
    reply = bench__v1__reply__unpack(&allocator, head.size - head.header,
                                     at + head.header);
    if (!reply || reply->body.len != options->bytes ||
        memcmp(reply->body.data, options->body, options->bytes) != 0)
        side_die("envelope", "another body came back");
    return head.stream;
}

size_t
envelope_size(const uint8_t *bytes, size_t size)
{
    struct frame_head head;

    if (size < FRAME_HEAD)
        return 0;
    if (!frame_head_read(bytes, &head) ||
        head.size > ENVELOPE_ROOM - FRAME_HEAD)
        side_die("envelope", "not a frame");
    return FRAME_HEAD + head.size;
}
