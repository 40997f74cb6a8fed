#ifndef ADDRESS_H
#define ADDRESS_H

#include "io.h"

#include <stdatomic.h>

#include <idem/placement.h>
#include <idem/timer.h>

struct idem_channel;
struct link;

enum address_event {
    ADDRESS_DIALLED,
    ADDRESS_UP,     /* a link is ready */
    ADDRESS_FAILED, /* no link came of it, or one on which nothing worked */
    ADDRESS_LOST,   /* a link that had worked is gone, or takes no more */
    ADDRESS_REST,   /* the pause is over and nobody wants a link */
};
#define ADDRESS_EVENTS 5

/* How its calls went. The counts are for any thread. */
struct outlier {
    atomic_uint successes, failures; /* since the last sweep */
    atomic_uint in_a_row;            /* failures */
    bool ejected;
    unsigned times; /* it was, less those that are forgiven */
    int64_t until_ns;
};

/* One address of a channel's target: how it stands, its dialling, its link. All
 * fields are under the channel's lock. It is freed when the target does not
 * name it any more and nothing uses it. */
struct address {
    struct idem_channel *channel;
    struct address *next; /* of the channel */
    char *name;
    const struct io *io;
    unsigned uses; /* the target names it; a dial, links, timers */
    uint64_t bit;  /* in a call's tried */
    uint64_t hash; /* of its name */
    bool dropped;  /* the target names it no more */

    struct outlier outlier;
    enum idem_channel_state state;
    char trouble[IDEM_MESSAGE_MAX]; /* of the last attempt that failed */
    struct link *link;              /* ready and not draining, or NULL */
    struct io_dialer *dialer;       /* while its dial is pending */
    bool dialing;                   /* until what came of it is seen to */
    int64_t backoff_ms;             /* the next pause */
    struct idem_timer redial;       /* the pause is over */
    struct idem_timer give_up;      /* dial and hello take too long */
};

/* With the lock, all of these. */

/* NULL: no transport has the name's scheme, or memory is out. One use: that the
 * target names it. */
struct address *address_new(struct idem_channel *channel, const char *name);

/* Well spread, also of texts and numbers that are close. */
uint64_t address_hash(struct idem_bytes bytes);

/* What goes there does not leave this machine: "ipc://…", "tcp://127.0.0.1:1".
 * A host's name counts as elsewhere, but for localhost. */
bool address_is_local(const char *name);

static inline uint64_t
address_mix(uint64_t hash)
{
    hash = (hash ^ hash >> 31) * UINT64_C(0x7fb5d329728ea185);
    hash = (hash ^ hash >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return hash ^ hash >> 33;
}

void address_use(struct address *address);
void address_release(struct address *address); /* may free it */

/* The target names it no more: no dials, no new calls; running ones end. */
void address_drop(struct address *address);

/* The one way to change the state. */
void address_step(struct address *address, enum address_event event);

/* Nobody wants it any more: it is dropped, or the channel is closing. */
bool address_unwanted(const struct address *address);

/* --- address_dial.c: without the lock --- */

/* Dial what wants to be dialled: all addresses, or with pick_first one. */
void address_dial_wanted(struct idem_channel *channel);

/* Nothing came of the dialling, or of the link; pause. */
void address_failed(struct address *address, const char *why);

/* Its link takes no more calls. worked: it had answered one. */
void address_lost(struct address *address, bool worked, const char *why);

/* Its link is used up; drop a use, too. */
void address_renew(struct address *address);

void address_dial_init(struct address *address);

/* With the lock: it said hello in time. */
void address_dial_done(struct address *address);

/* With the lock: a pending dial ends, a pause does too. */
void address_dial_stop(struct address *address);

#endif
