#ifndef FUZZ_FEED_H
#define FUZZ_FEED_H

#include "inbox.h"

#include <string.h>

/* What a target does for itself tells the fuzzer nothing, and its loops over
 * bytes would cost more than all the rest, each turn traced. */
#ifdef __clang__
#define FEED_UNTRACED __attribute__((no_sanitize("coverage")))
#else
#define FEED_UNTRACED
#endif

/* The sum of what was read before and these bytes; data may be NULL. */
FEED_UNTRACED static inline uint64_t
feed_sum(uint64_t sum, struct idem_bytes bytes)
{
    size_t i = 0;
    uint64_t word;

    for (; bytes.data && i + sizeof word <= bytes.size; i += sizeof word) {
        memcpy(&word, bytes.data + i, sizeof word);
        sum = (sum ^ word) * 0x100000001b3;
        sum ^= sum >> 29;
    }
    for (; bytes.data && i < bytes.size; i++)
        sum = (sum ^ bytes.data[i]) * 0x100000001b3;
    return (sum ^ bytes.size) * 0x100000001b3;
}

/* A frame reader that a target feeds, piece by piece. */
struct feed {
    struct inbox inbox;
    bool broken; /* nothing more is taken */

    /* Take what is whole; broken, if the inbox says so. */
    void (*cut)(struct feed *feed);
};

/* At most piece bytes at a time. */
FEED_UNTRACED static inline void
feed_bytes(struct feed *feed, struct idem_bytes bytes, size_t piece)
{
    while (bytes.size > 0 && !feed->broken) {
        size_t room, size = bytes.size < piece ? bytes.size : piece;
        uint8_t *space = inbox_space(&feed->inbox, &room);

        IDEM_ASSERT(room > 0);
        size = size < room ? size : room;
        memcpy(space, bytes.data, size);
        inbox_filled(&feed->inbox, size);
        bytes.data += size;
        bytes.size -= size;
        feed->cut(feed);
    }
}

/* Bytes that the frame that is begun wants, as far as it is known; 0: none is
 * begun. */
static inline size_t
feed_wanted(const struct feed *feed)
{
    const struct inbox *inbox = &feed->inbox;
    size_t has = inbox->big ? inbox->big_at : inbox->tail - inbox->head;
    size_t all = inbox_begun(inbox);

    if (inbox->skip > 0)
        return all;
    /* Not even the head: of a plain message a byte at a time tells. */
    if (all > 0 && all == has)
        all = inbox->language == INBOX_FRAMES && has < FRAME_HEAD ? FRAME_HEAD
                                                                  : has + 1;
    return all - has;
}

/* Just the zeros that make the last frame whole: more would be frames of their
 * own. How many; max: so many are not enough, and what was given is not all. */
static inline size_t
feed_zeros(struct feed *feed, size_t max)
{
    static const uint8_t zeros[4096];
    size_t given = 0, wants;

    while (!feed->broken && (wants = feed_wanted(feed)) > 0) {
        if (wants >= max - given)
            return max;
        given += wants;
        for (; wants > sizeof zeros; wants -= sizeof zeros)
            feed_bytes(feed, (struct idem_bytes){zeros, sizeof zeros},
                       SIZE_MAX);
        feed_bytes(feed, (struct idem_bytes){zeros, wants}, SIZE_MAX);
    }
    return given;
}

#endif
