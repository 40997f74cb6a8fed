#ifndef CHANNEL_LINK_H
#define CHANNEL_LINK_H

#include "connection.h"
#include "streams.h"
#include "timer.h"

/* A channel's connection to an address, and the attempts that fly on it. Part
 * of channel_inside.h, which says in what order locks are taken. */

struct address;
struct call;
struct client_call;
struct idem_channel;

#define METHOD_IDS 256 /* methods that get a number; the rest go by name */

/* One connection and the attempts on it. The channel's lock; freed when the
 * connection is gone. */
struct link {
    struct idem_channel *channel;
    struct address *address; /* a use */
    struct connection *connection;
    struct link *next; /* in the channel */
    struct streams streams;
    uint32_t last_stream;
    uint32_t roomy_turn; /* which stream writes first when there is room */
    bool ready;          /* SETTINGS were exchanged */
    bool proved;         /* a call, or a stream's message, was answered on it */
    bool draining;       /* takes no more */
    bool finished;       /* … and link_finish_empty has ended it */
    struct idem_timer keepalive;
    bool ticking;              /* the timer runs, or fires */
    bool asked;                /* a PING was sent … */
    uint64_t heard;            /* … when so much was heard */
    struct idem_timer arming;  /* a round of channel_arming.c … */
    bool arms;                 /* … which is to come, or comes … */
    int64_t arms_at_ns;        /* … then … */
    uint32_t armed_to;         /* … for calls above this stream */
    bool told[METHOD_IDS + 1]; /* methods whose id the peer knows */
};

/* --- channel_keepalive.c: with the lock --- */

/* A call flies and nobody ticks. */
void keepalive_begin(struct link *link);

/* The link is closed. True: a reference of its connection is to be dropped. */
bool keepalive_end(struct link *link);

/* --- channel_arming.c: with the lock --- */

/* The call flies from now on: sees to its deadline. */
void arming_note(struct link *link, struct call *call);

/* As keepalive_end. */
bool arming_end(struct link *link);

/* --- channel_link_life.c --- */

/* Own the stream. The lock is not held. */
void link_open(struct address *address, struct io_stream *stream);

/* Without the lock: end the links that are retired and empty. */
void link_finish_empty(struct idem_channel *channel);

/* --- channel_link.c --- */

/* What its connection reads; see connection_events. */
const char *link_frame(void *with, const struct frame *frame);

/* With the lock: the flying calls over this stream, not resumed yet, one after
 * another by next_waiting. */
struct client_call *link_take_flying(struct link *link, uint32_t above);

enum link_placed {
    LINK_PLACED, /* flies; flush the connection */
    LINK_FULL,   /* no room, or the link is about to be lost: wait */
    LINK_REFUSED /* the outcome says why; not taken */
};

/* With the channel's lock. */
bool link_has_room(const struct link *link);

/* A call got on here: the next time its address is dialled again without a long
 * pause. */
void link_prove(struct link *link);

/* No new calls here; it ends with its last one. True: it had been the link of
 * its address, which wants another. */
bool link_retire(struct link *link);

/* Its stream ids are used up: retired. True, once: see to its address. */
bool link_used_up(struct link *link);

/* True: it drains and nothing flies. Finish the connection. */
bool link_over(const struct link *link);
enum link_placed link_place(struct link *link, struct client_call *call);
void link_withdraw(struct link *link, struct client_call *call);

#endif
