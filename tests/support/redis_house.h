#ifndef REDIS_HOUSE_H
#define REDIS_HOUSE_H

#include "redis.h"

/* A Redis master, its replica, and a Sentinel that watches over both. Who is
 * which changes with each failover. Every function fails the test when it
 * cannot do its work. One thread. */
struct redis_house;

/* Returns when the Sentinel knows them. */
struct redis_house *redis_house_start(void);

void redis_house_free(struct redis_house *house); /* NULL is fine */

/* "redis+sentinel://…/main"; the first of its two Sentinels is not there. */
const char *redis_house_url(const struct redis_house *house);

struct redis *redis_house_sentinel(struct redis_house *house);

/* As the Sentinel says now; of two that believe to be one, it is the one that
 * clients find. */
struct redis *redis_house_master(struct redis_house *house);
struct redis *redis_house_other(struct redis_house *house); /* who is not */

/* Kill the master, wait until the Sentinel has made one of the other, and start
 * it again: as it was told nothing, it believes that it is one still. The
 * replica must be one (redis_house_rejoin); a Sentinel does this once in some
 * seconds. */
void redis_house_fail_over(struct redis_house *house);

/* Make the other one a replica of the master, as the Sentinel does by itself
 * when it has had enough of two masters (8 s), and wait until it is in step. */
void redis_house_rejoin(struct redis_house *house);

#endif
