#ifndef PLACES_WORLD_H
#define PLACES_WORLD_H

#include "support.h"

#include "echo.idem.h"

#include <pthread.h>
#include <stdatomic.h>

/* Several servers in this process, and a channel to all of them. */

#define PLACES_MAX 8

struct site {
    struct places_world *world;
    struct idem_server *server;
    char address[64];
    atomic_uint ran;     /* handlers that were begun */
    atomic_bool refuses; /* turns each call away, before its handler … */
    atomic_uint refused; /* … so many so far */
    unsigned inside;     /* Blocks at the gate; the world's lock */
};

struct places_world {
    struct site place[PLACES_MAX];
    unsigned n;
    struct idem_channel *channel;
    char target[PLACES_MAX * 64];
    pthread_mutex_t lock;  /* guards the gate and each inside */
    pthread_cond_t change; /* of these */
    bool gate;
};

/* n servers on tcp, and a channel to "list://" of them that only retries: keys
 * go as they are given, also with methods without an effect. Waits until all n
 * are READY (pick_first: one is). */
void places_world_open(struct places_world *world, unsigned n,
                       const struct idem_channel_options *options);
void places_world_close(struct places_world *world);

/* Start it at its address, or end it with all of its calls. */
void site_start(struct site *place);
void site_stop(struct site *place);

/* Wait until so many addresses take calls. */
void places_await_ready(struct places_world *world, unsigned n);

/* An Echo with this key (NULL: none) of a retry policy's attempts. */
enum idem_status places_echo(struct places_world *world, const char *key,
                             struct idem_outcome *outcome);

/* Calls that a server has and has not answered. */
unsigned places_flying(struct places_world *world);

/* Start a Block. told, if wanted, lives until the channel is closed, and is
 * written before that returns. */
struct idem_call *places_block(struct places_world *world,
                               struct idem_outcome *told,
                               const struct idem_call_options *options);
void places_await_inside(struct places_world *world, unsigned place,
                         unsigned inside);

/* Wait until so many are inside at all places together; at_place receives how
 * many at each. */
void places_await_all_inside(struct places_world *world, unsigned inside,
                             unsigned at_place[PLACES_MAX]);
void places_open_gate(struct places_world *world);

/* Echoes so far at each, for an assertion: "3 3 3". */
const char *places_ran(struct places_world *world);

#endif
