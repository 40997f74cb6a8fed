#ifndef CANDIDATE_H
#define CANDIDATE_H

#include "measure.h"
#include "process.h"

/* Who competes in rpc_bench: a server and a client program (side.h). */
enum candidate_number {
    IDEM_POOL,
    IDEM_INLINE,
    IDEM_BLOCKING,
    IDEM_TALK,
    IDEM_WATCH,
    PLAIN,
    REQREP,
    GRPC_QUEUE,
    GRPC_QUEUES,
    GRPC_CALLBACK,
    GRPC_SYNC,
    GRPC_TALK,
    GRPC_WATCH,
    CANDIDATES,
};

struct candidate {
    const char *name;
    const char *program;
    const char *how; /* its own word, for both sides */
};

extern const struct candidate candidates[CANDIDATES];

struct candidate_load {
    unsigned connections, in_flight, bytes;
    double seconds;
};

/* A server that runs. */
struct contestant {
    const struct candidate *candidate;
    struct process server;
    char address[128];
};

/* False: its program was not built. */
bool candidate_is_built(const struct candidate *candidate);

/* transport is "tcp", "tls+tcp" or "ipc"; folder is for sockets and stores. */
struct contestant candidate_start(const struct candidate *candidate,
                                  const char *transport, const char *folder);
void contestant_stop(struct contestant *contestant);

/* One client, from its start to its end. */
struct measure contestant_run(struct contestant *contestant,
                              const struct candidate_load *load);

/* What a connection that has made one call costs the server that keeps it, in
 * KiB. */
double contestant_idle_kib(struct contestant *contestant);

#endif
