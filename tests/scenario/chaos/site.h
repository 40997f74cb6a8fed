#ifndef SITE_H
#define SITE_H

#include "support.h"

#include "postgres.h"
#include "redis_house.h"
#include "stepped_clock.h"
#include "tcp_proxy.h"
#include "tempdir.h"

#include <idem/channel.h>

/* Two servers of effects.proto as processes, on one PostgreSQL behind a proxy
 * that cuts, with a Redis in front that a Sentinel watches over, and a channel
 * to each; all three have clocks of their own. The thread that opens it does
 * all of this. */

#define SITE_SERVERS 2

struct site_server {
    char address[64], log[128], clock_file[128];
    struct stepped_clock clock;
    pid_t pid;
    struct idem_channel *channel; /* of any thread */
};

struct site {
    struct tempdir dir;
    char push_log[128];
    struct postgres *postgres;
    struct redis_house *redis;
    struct tcp_proxy *proxy;
    struct stepped_clock clock; /* of the clients */
    struct site_server servers[SITE_SERVERS];
};

/* outside: the effect of Add is made outside its transaction. */
void site_open(struct site *site, bool outside);
void site_close(struct site *site);

/* Start it, again and again while the database is away. */
void site_start(struct site *site, unsigned server);

/* End the servers by SIGTERM: their calls end first. */
void site_stop(struct site *site);

#endif
