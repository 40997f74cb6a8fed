#ifndef FLOW_WORLD_H
#define FLOW_WORLD_H

#include "support.h"

#include "flow.idem.h"

#include <pthread.h>
#include <stdatomic.h>

/* A server with the service of flow.proto and a channel to it. */

struct flow_options {
    const char *address; /* NULL: tcp */
    struct idem_server_options server;
    struct idem_channel_options channel;
    struct idem_interceptor *on_server, *on_channel; /* NULL: none */
    bool retries; /* the channel has the interceptors of a client */
};

struct flow_world {
    struct flow_options options;
    struct idem_server *server;
    struct idem_channel *channel;
    char address[128];

    atomic_uint ran;           /* handlers that were begun */
    atomic_llong remaining_ms; /* that the last of them had */
    atomic_uint ended;         /* handlers that are through */
    atomic_uint given_up;      /* … because their caller had */
    atomic_uint sent;          /* messages that handlers have written */
    atomic_uint refuse; /* so many Sums and Chats fail with ABORTED … */
    unsigned after;     /* … when they have read so many messages */

    pthread_mutex_t lock;
    pthread_cond_t change; /* for each of these */
};

void flow_world_open(struct flow_world *world,
                     const struct flow_options *options);
void flow_world_close(struct flow_world *world);

/* Wait until one of them is so many. Fails after 20 s. */
void flow_world_await(struct flow_world *world, atomic_uint *what,
                      unsigned wanted);

/* Say with that number comes back: the connection serves other calls. */
void flow_world_say(struct flow_world *world, uint64_t number);

/* A note of so many bytes, which follow from its number; its memory is static
 * to the thread. */
const flow_note *flow_note_of(uint64_t number, size_t size);
bool flow_note_is(const flow_note *note, uint64_t number, size_t size);
void assert_note(const flow_note *note, uint64_t number, size_t size);

#endif
