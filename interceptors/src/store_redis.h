#ifndef STORE_REDIS_H
#define STORE_REDIS_H

#include <idem/base.h>

#define REDIS_PENDING_MAX 4096 /* commands that await their reply */

/* One connection to Redis: commands out, replies in, strictly in order, without
 * blocking and without a time limit of its own (the shield's turns have them).
 * One thread. A link that has failed in any way is closed, never repaired: a
 * late reply would be taken for the next command's (case B061).
 *
 * It stands on hiredis's plain context in non-blocking mode. The asynchronous
 * one of 0.14.1 aborts the process on a reply that nobody asked for, frees
 * itself under its user, and does not know time either. */
struct redis_link;

enum redis_kind {
    REDIS_VALUE, /* a bulk string */
    REDIS_NIL,
    REDIS_STATUS,  /* "OK" */
    REDIS_REFUSAL, /* an error: LOADING, READONLY, OOM, WRONGTYPE … */
    REDIS_ODD,     /* what no command of ours is answered with */
};

struct redis_reply {
    enum redis_kind kind;
    struct idem_bytes bytes; /* lives until the function returns */
};

/* A reply to the command that was sent with this user. False: the link cannot
 * be trusted any more. */
typedef bool redis_replied_fn(void *node, void *user,
                              const struct redis_reply *reply);

/* Where to, and how to get in. */
struct redis_target {
    const char *host; /* a numeric address; NULL: path is where */
    const char *port, *path;
    const char *user, *password; /* "": none */
    unsigned db;
};

/* Begin to connect and to log in. The target may go. NULL: it failed at once.
 */
struct redis_link *redis_link_open(const struct redis_target *target,
                                   size_t max_reply);

/* Forgets the commands under way. NULL is fine. */
void redis_link_close(struct redis_link *link);

int redis_link_fd(const struct redis_link *link);

/* What to poll for. */
short redis_link_events(const struct redis_link *link);

/* Connected and logged in: PING was answered. */
bool redis_link_ready(const struct redis_link *link);

/* Commands that await their reply, those of the login included. */
unsigned redis_link_pending(const struct redis_link *link);

/* False: too many commands await their reply. */
bool redis_link_get(struct redis_link *link, struct idem_bytes key, void *user);

/* With its time to live in the same command (case B050). False: as above. */
bool redis_link_set(struct redis_link *link, struct idem_bytes key,
                    struct idem_bytes value, int64_t ttl_ms, void *user);

/* A command of one or two words; b may be NULL. False: as above. */
bool redis_link_say(struct redis_link *link, const char *a, const char *b,
                    void *user);

/* Do what poll says is possible. False: the link is broken, close it. */
bool redis_link_turn(struct redis_link *link, short events,
                     redis_replied_fn *replied, void *node);

#endif
