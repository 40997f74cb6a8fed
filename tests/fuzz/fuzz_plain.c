#include "fuzz.h"

#include "feed.h"
#include "header_wire.h"
#include "plain.h"

/* Messages of plain nng clients: however the bytes are cut, the calls are the
 * same; an answer to each can be read again, behind the same route. */

#define MAX_MESSAGE 70000 /* more than a chunk holds */
#define PAD_MAX 80000     /* zeros behind the input, so that it is whole */

struct reading {
    struct feed feed;
    uint64_t sum; /* of all calls */
    unsigned calls;
    bool greeted, local;
};

/* The call as its answer: what it says comes back. */
static void
check_answer(const struct frame *call, bool local)
{
    static uint8_t bytes[PLAIN_BESIDE_MAX + PLAIN_FRONT_MAX];
    uint8_t front[2][PLAIN_FRONT_MAX];
    struct idem_bytes parts[3];
    struct frame again;
    size_t size = 0;
    uint64_t told;

    plain_answer_write(front, call, local, parts);
    for (unsigned i = 0; i < 3; i++) {
        if (parts[i].size > 0)
            memcpy(bytes + size, parts[i].data, parts[i].size);
        size += parts[i].size;
    }
    IDEM_ASSERT(plain_head_read(bytes, local, &told));
    IDEM_ASSERT(told == size - plain_head_size(local) + call->payload.size);
    if (call->payload.size > 0) /* it is behind these parts */
        return;
    IDEM_ASSERT(plain_call_read(
        (struct idem_bytes){bytes + plain_head_size(local), (size_t)told},
        &again));
    IDEM_ASSERT(idem_bytes_equal(again.route, call->route));
    IDEM_ASSERT(idem_bytes_equal(again.header, call->header));
    IDEM_ASSERT(again.flags == call->flags);
}

static void
take(struct reading *reading, const struct frame *call)
{
    IDEM_ASSERT(call->type == FRAME_OPEN);
    IDEM_ASSERT(call->route.size >= 4 && call->route.size <= PLAIN_ROUTE_MAX);
    IDEM_ASSERT(call->oversize == (call->payload.size > MAX_MESSAGE));
    if (call->flags && !call->oversize) {
        IDEM_ASSERT(call->header.size <= FRAME_HEADER_MAX);
        check_answer(call, reading->local);
    }
    reading->sum = feed_sum(reading->sum, call->route);
    reading->sum = feed_sum(reading->sum, call->header);
    reading->sum = feed_sum(reading->sum, call->payload);
    reading->calls++;
}

static void
cut(struct feed *feed)
{
    struct reading *reading = (struct reading *)feed;
    enum inbox_next next = INBOX_FRAME;
    struct frame call;

    if (!reading->greeted) {
        next = inbox_preface(&feed->inbox);
        if (next == INBOX_BROKEN &&
            inbox_preface_plain(&feed->inbox, reading->local))
            next = INBOX_FRAME;
        reading->greeted = next == INBOX_FRAME;
    }
    while (next == INBOX_FRAME) {
        next = inbox_next(&feed->inbox, &call);
        if (next == INBOX_FRAME)
            take(reading, &call);
    }
    feed->broken = next == INBOX_BROKEN;
}

static struct reading
read_all(struct idem_bytes bytes, bool local, size_t piece)
{
    static const uint8_t hello[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    struct reading reading = {
        .feed.cut = cut, .sum = 0xcbf29ce484222325, .local = local};

    IDEM_ASSERT(inbox_init(&reading.feed.inbox, MAX_MESSAGE));
    feed_bytes(&reading.feed, (struct idem_bytes){hello, sizeof hello}, piece);
    IDEM_ASSERT(reading.greeted);
    feed_bytes(&reading.feed, bytes, piece);
    (void)feed_zeros(&reading.feed, PAD_MAX);
    inbox_fini(&reading.feed.inbox);
    return reading;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    uint8_t choice = fuzz_take_byte(&input);
    bool local = choice & 1;
    struct reading whole = read_all(input, local, SIZE_MAX);
    struct reading pieces = read_all(input, local, 1 + choice / 2u);

    IDEM_ASSERT(whole.feed.broken == pieces.feed.broken);
    IDEM_ASSERT(whole.calls == pieces.calls && whole.sum == pieces.sum);
    return 0;
}
