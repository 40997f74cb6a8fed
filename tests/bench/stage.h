#ifndef STAGE_H
#define STAGE_H

#include <idem/channel.h>

/* A private PostgreSQL and a private Redis, and the service of bench.proto on
 * them, in this process. Ends the process when it cannot. */
struct stage {
    struct postgres *postgres;
    struct redis *redis;
    struct idem_server *server, *shielded; /* without and with Redis */
    struct idem_channel *channel, *shielded_channel;
    int pids[2]; /* of PostgreSQL's first process and of Redis */
};

void stage_open(struct stage *stage);
void stage_close(struct stage *stage);

#endif
