#ifndef ECHO_WORLD_H
#define ECHO_WORLD_H

#include "support.h"

#include "echo.idem.h"
#include "io.h"
#include "tempdir.h"

#include <pthread.h>
#include <stdatomic.h>

/* A server with the service of echo.proto and a channel to it. */

enum echo_transport {
    ECHO_TCP,
    ECHO_IPC,
    ECHO_INPROC,
    ECHO_TLS, /* over tcp; server.tls and channel.tls are needed */
};

struct echo_options {
    enum echo_transport transport;
    const struct io *server_io, *channel_io; /* NULL: the transport's own */
    struct idem_server_options server;
    struct idem_channel_options channel;
    bool standard;    /* the chain of idem_server_open, without a store */
    bool not_started; /* listens, but takes no calls */
};

struct echo_world {
    struct echo_options options;
    struct tempdir dir;
    struct idem_server *server;
    struct idem_channel *channel;
    char address[128];

    atomic_uint ran;       /* handlers that were begun */
    atomic_uint gave_up;   /* Blocks that saw their caller give up */
    pthread_mutex_t lock;  /* guards the rest */
    pthread_cond_t change; /* signalled for each */
    bool gate;             /* open: Block returns */
    unsigned passes;       /* so many Blocks return all the same */
    unsigned inside;       /* Blocks that wait at the gate */
    unsigned started;      /* calls of echo_world_start that … */
    unsigned ended;        /* … are told */
};

void echo_world_open(struct echo_world *world,
                     const struct echo_options *options);
void echo_world_close(struct echo_world *world);

/* A server or a channel more of the same world; the address stays. */
struct idem_server *echo_world_server(struct echo_world *world);
struct idem_channel *echo_world_channel(struct echo_world *world);

void echo_world_open_gate(struct echo_world *world);
void echo_world_let_one_out(struct echo_world *world);

/* Wait until so many Blocks are at the gate. Fails after 10 s. */
void echo_world_await_inside(struct echo_world *world, unsigned inside);

/* What came of a call. */
struct echo_result {
    struct echo_world *world;
    struct idem_call *call;
    unsigned told; /* times that done ran */
    enum idem_status status;
    struct idem_outcome outcome;
    uint64_t number;
    size_t size;
    char key[256], metadata[256], peer[256];
    unsigned attempt;
    int64_t remaining_ms;
};

typedef struct idem_call *echo_start_fn(struct idem_channel *channel,
                                        const echo_echo_request *request,
                                        const struct idem_call_options *options,
                                        echo_echo_done *done);

/* Start a call; the result must live until it is told. */
void echo_world_start(struct echo_world *world, struct idem_channel *channel,
                      echo_start_fn *start, uint64_t number, size_t size,
                      const struct idem_call_options *options,
                      struct echo_result *result);

/* Wait until all that were started are told. Fails after 20 s. */
void echo_world_await(struct echo_world *world);

/* Give the handle back. */
void echo_result_fini(struct echo_result *result);

/* Echo and wait. */
struct echo_result echo_world_call(struct echo_world *world, uint64_t number,
                                   size_t size,
                                   const struct idem_call_options *options);

void assert_echoed(const struct echo_result *result, uint64_t number,
                   size_t size);

/* Status and effect, with the message when they are not these. */
void assert_ended(const struct echo_result *result, enum idem_status status,
                  enum idem_effect effect);

#endif
