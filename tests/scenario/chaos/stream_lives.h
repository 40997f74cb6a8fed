#ifndef STREAM_LIVES_H
#define STREAM_LIVES_H

#include "checker.h"
#include "dice.h"
#include "site.h"

#include <idem/session.h>

#include <stdatomic.h>

/* A stream's whole life: begun again and again until it is known what became of
 * each of its messages, which is noted for the checker. */

/* What somebody was told of a key. */
struct told {
    char key[IDEM_KEY_MAX + 1], reason[IDEM_REASON_MAX];
    struct checker_call call;
    struct told *next;
};

/* A stream, however often it was begun. */
struct story {
    char session[IDEM_SESSION_MAX]; /* "": not known yet */
    int64_t numbers; /* of messages, and one of the end; 0: a server stream */
    char key[IDEM_KEY_MAX + 1]; /* … whose only one this is */
    struct story *next;
};

/* A thread and what it alone has. */
struct streamer {
    struct site *site;
    atomic_bool *over; /* no more new ones */
    void (*live)(struct streamer *streamer, struct story *story);
    const char *text;
    struct dice dice;
    pthread_t thread;
    unsigned n, begun;
    struct story *stories;
    struct told *told;
};

void stream_live_each(struct streamer *streamer, struct story *story);
void stream_live_asked(struct streamer *streamer, struct story *story);
void stream_live_followed(struct streamer *streamer, struct story *story);

#endif
