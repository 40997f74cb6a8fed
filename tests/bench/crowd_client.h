#ifndef CROWD_CLIENT_H
#define CROWD_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

/* The clients of crowd_bench: sockets on one epoll, frames by hand, so that
 * what is measured is the server. One thread. */

#define CROWD_KIND_LIST(X)                                                     \
    X(IDLE, "idle")       /* says hello, and no more */                        \
    X(ACTIVE, "active")   /* the next call when the last was answered */       \
    X(GARBAGE, "garbage") /* noise, and again when it was closed */            \
    X(HALF, "half")       /* half of a frame */                                \
    X(GIANT, "giant")     /* a frame of 4 GiB, as far as it gets */            \
    X(DRIP, "drip")       /* a byte a second */                                \
    X(DEAF, "deaf")       /* calls, and reads no answer */

enum crowd_kind {
#define CROWD_ENUM(name, text) CROWD_##name,
    CROWD_KIND_LIST(CROWD_ENUM)
#undef CROWD_ENUM
        CROWD_KINDS,
};

/* Of the active ones, while they were run. */
struct crowd_seen {
    uint64_t calls;
    uint64_t fewest; /* of one connection */
    uint64_t p50_ns, p99_ns;
    int64_t longest_ns; /* that one waited for its answer */
    unsigned lost;      /* connections that the server closed, idle ones too */
};

struct crowd_client;

/* address is "tcp://127.0.0.1:4711". */
struct crowd_client *crowd_client_new(const char *address);
void crowd_client_free(struct crowd_client *client);

/* So many more of that kind; returns when they have said hello. */
void crowd_client_add(struct crowd_client *client, enum crowd_kind kind,
                      unsigned n);

/* Close all of that kind. */
void crowd_client_drop(struct crowd_client *client, enum crowd_kind kind);

/* Let all do what they do for so long. Calls that are under way at the end go
 * on with the next run. */
struct crowd_seen crowd_client_run(struct crowd_client *client, double seconds);

const char *crowd_kind_name(enum crowd_kind kind);

/* Ends the process. */
void crowd_die(const char *what) __attribute__((noreturn));

#endif
