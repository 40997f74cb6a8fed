#include "fuzz.h"

#include "feed.h"

/* The frame reader: however a peer's bytes are cut into pieces, the frames are
 * the same; what they say can be written again. */

#define MAX_MESSAGE 70000 /* more than a chunk holds */
#define PAD_MAX 80000     /* zeros behind the input, so that a frame is whole */

struct reading {
    struct feed feed;
    uint64_t sum; /* of all frames */
    unsigned frames;
    bool greeted;
};

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
    uint8_t about[6] = {frame->type, frame->flags};

    IDEM_ASSERT(frame->header.size <= FRAME_HEADER_MAX);
    IDEM_ASSERT(frame->oversize == (frame->payload.size > MAX_MESSAGE));
    if (!frame->oversize)
        check_head(frame);
    memcpy(about + 2, &frame->stream, sizeof frame->stream);
    reading->sum =
        feed_sum(reading->sum, (struct idem_bytes){about, sizeof about});
    reading->sum = feed_sum(reading->sum, frame->header);
    reading->sum = feed_sum(reading->sum, frame->payload);
    reading->frames++;
}

static void
cut(struct feed *feed)
{
    struct reading *reading = (struct reading *)feed;
    struct frame frame;
    enum inbox_next next = INBOX_FRAME;

    if (!reading->greeted) {
        next = inbox_preface(&feed->inbox);
        reading->greeted = next == INBOX_FRAME;
    }
    while (next == INBOX_FRAME) {
        next = inbox_next(&feed->inbox, &frame);
        if (next == INBOX_FRAME)
            take(reading, &frame);
    }
    feed->broken = next == INBOX_BROKEN;
}

static struct reading
read_all(struct idem_bytes bytes, size_t piece)
{
    struct reading reading = {.feed.cut = cut, .sum = 0xcbf29ce484222325};

    IDEM_ASSERT(inbox_init(&reading.feed.inbox, MAX_MESSAGE));
    feed_bytes(&reading.feed, bytes, piece);
    (void)feed_zeros(&reading.feed, PAD_MAX);
    inbox_fini(&reading.feed.inbox);
    return reading;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    size_t piece = 1 + fuzz_take_byte(&input);
    struct reading whole = read_all(input, SIZE_MAX);
    struct reading pieces = read_all(input, piece);

    IDEM_ASSERT(whole.feed.broken == pieces.feed.broken);
    IDEM_ASSERT(whole.frames == pieces.frames && whole.sum == pieces.sum);
    return 0;
}
