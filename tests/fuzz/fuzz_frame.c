#include "fuzz.h"

#include "inbox.h"

#include <string.h>

/* The frame reader: however a peer's bytes are cut into pieces, the frames are
 * the same; what they say can be written again. */

#define MAX_MESSAGE 70000 /* more than a chunk holds */
#define PAD_MAX 200000    /* zeros behind the input, so that a frame is whole */

struct reading {
    struct inbox inbox;
    uint64_t sum; /* of all frames */
    unsigned frames;
    bool greeted, broken;
};

static void
mix(struct reading *reading, uint64_t value)
{
    reading->sum = (reading->sum ^ value) * 0x100000001b3;
    reading->sum ^= reading->sum >> 29;
}

static void
add(struct reading *reading, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    size_t i = 0;
    uint64_t word;

    for (; at && i + sizeof word <= size; i += sizeof word) {
        memcpy(&word, at + i, sizeof word);
        mix(reading, word);
    }
    for (; at && i < size; i++)
        mix(reading, at[i]);
    mix(reading, size);
}

static void
check_head(const struct frame *frame)
{
    uint8_t bytes[FRAME_HEAD];
    struct frame_head head;

    frame_head_write(bytes, frame);
    IDEM_ASSERT(frame_head_read(bytes, &head));
    IDEM_ASSERT(head.type == frame->type && head.flags == frame->flags);
    IDEM_ASSERT(head.stream == frame->stream);
    IDEM_ASSERT(head.header == frame->header.size);
    IDEM_ASSERT(head.size == frame->header.size + frame->payload.size);
}

static void
take(struct reading *reading, const struct frame *frame)
{
    IDEM_ASSERT(frame->header.size <= FRAME_HEADER_MAX);
    IDEM_ASSERT(frame->oversize == (frame->payload.size > MAX_MESSAGE));
    if (!frame->oversize)
        check_head(frame);
    add(reading, &frame->type, sizeof frame->type);
    add(reading, &frame->flags, sizeof frame->flags);
    add(reading, &frame->stream, sizeof frame->stream);
    add(reading, frame->header.data, frame->header.size);
    add(reading, frame->payload.data, frame->payload.size);
    reading->frames++;
}

static void
cut(struct reading *reading)
{
    struct frame frame;
    enum inbox_next next = INBOX_FRAME;

    if (!reading->greeted) {
        next = inbox_preface(&reading->inbox);
        reading->greeted = next == INBOX_FRAME;
    }
    while (next == INBOX_FRAME) {
        next = inbox_next(&reading->inbox, &frame);
        if (next == INBOX_FRAME)
            take(reading, &frame);
    }
    reading->broken = next == INBOX_BROKEN;
}

/* At most piece bytes at a time. */
static void
feed(struct reading *reading, struct idem_bytes bytes, size_t piece)
{
    while (bytes.size > 0 && !reading->broken) {
        size_t room, size = bytes.size < piece ? bytes.size : piece;
        uint8_t *space = inbox_space(&reading->inbox, &room);

        IDEM_ASSERT(room > 0);
        size = size < room ? size : room;
        memcpy(space, bytes.data, size);
        inbox_filled(&reading->inbox, size);
        bytes.data += size;
        bytes.size -= size;
        cut(reading);
    }
}

/* What is missing of the frame that is begun. */
static void
complete(struct reading *reading, size_t piece)
{
    static const uint8_t zeros[4096];

    for (size_t given = 0; given < PAD_MAX && !reading->broken &&
                           inbox_begun(&reading->inbox) > 0;
         given += sizeof zeros)
        feed(reading, (struct idem_bytes){zeros, sizeof zeros}, piece);
}

static struct reading
read_all(struct idem_bytes bytes, size_t piece)
{
    struct reading reading = {.sum = 0xcbf29ce484222325};

    IDEM_ASSERT(inbox_init(&reading.inbox, MAX_MESSAGE));
    feed(&reading, bytes, piece);
    complete(&reading, SIZE_MAX);
    inbox_fini(&reading.inbox);
    return reading;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    size_t piece = 1 + fuzz_take_byte(&input);
    struct reading whole = read_all(input, SIZE_MAX);
    struct reading pieces = read_all(input, piece);

    IDEM_ASSERT(whole.broken == pieces.broken);
    IDEM_ASSERT(whole.frames == pieces.frames && whole.sum == pieces.sum);
    return 0;
}
