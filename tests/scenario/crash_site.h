#ifndef CRASH_SITE_H
#define CRASH_SITE_H

#include "support.h"

#include "checker.h"
#include "postgres.h"
#include "redis.h"
#include "tempdir.h"

#include <idem/channel.h>

/* A server of effects.proto that may be killed, alone with a file, or on
 * PostgreSQL with Redis in front; its client, and who judges what it did. */

struct crash_site {
    struct tempdir dir;
    char books[128], push_log[128], points[128], log[128], address[64];
    struct postgres *postgres; /* NULL: sqlite */
    struct redis *redis;
    pid_t server;
    struct idem_channel *channel;
    struct checker *checker; /* of all keys that are called */
};

/* cmocka fixtures: no server yet. */
int crash_site_on_sqlite(void **state);
int crash_site_on_postgres_and_redis(void **state);
int crash_site_down(void **state);

/* Start the server with a variable in its environment, for its faults: it may
 * die before it listens. NULL: none, and it must listen. */
void crash_site_start(struct crash_site *site, const char *variable,
                      const char *value);

/* For child_wait_until: the server is not there any more. */
bool crash_site_is_dead(void *with);

/* I1 to I10, of all keys that the checker was told. */
void crash_site_check(struct crash_site *site);

#endif
