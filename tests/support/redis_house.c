#include "support.h"

#include "child.h"
#include "loopback.h"
#include "redis_house.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 30000
#define AT_ONCE "repl-diskless-sync-delay 0\n" /* a replica is in step soon */

struct redis_house {
    struct redis *servers[2], *sentinel;
    char url[128];
};

static bool
has_replica(void *with)
{
    char reply[4096];

    redis_say(with, "INFO replication", reply, sizeof(reply));
    return strstr(reply, "state=online") != NULL;
}

static bool
knows_replica(void *with)
{
    char reply[4096];

    redis_say(with, "INFO sentinel", reply, sizeof(reply));
    return strstr(reply, "slaves=1") != NULL;
}

struct redis_house *
redis_house_start(void)
{
    struct redis_house *house = calloc(1, sizeof(*house));
    char options[128];

    assert_non_null(house);
    house->servers[0] = redis_start(AT_ONCE);
    snprintf(options, sizeof(options), AT_ONCE "replicaof 127.0.0.1 %u\n",
             redis_port(house->servers[0]));
    house->servers[1] = redis_start(options);
    assert_true(child_wait_until(has_replica, house->servers[0], PATIENCE_MS));
    house->sentinel =
        redis_start_sentinel("main", redis_port(house->servers[0]));
    assert_true(child_wait_until(knows_replica, house->sentinel, PATIENCE_MS));
    snprintf(house->url, sizeof(house->url),
             "redis+sentinel://127.0.0.1:%u,127.0.0.1:%u/main",
             loopback_free_port(), redis_port(house->sentinel));
    return house;
}

void
redis_house_free(struct redis_house *house)
{
    if (!house)
        return;
    redis_free(house->sentinel);
    redis_free(house->servers[1]);
    redis_free(house->servers[0]);
    free(house);
}

const char *
redis_house_url(const struct redis_house *house)
{
    return house->url;
}

struct redis *
redis_house_sentinel(struct redis_house *house)
{
    return house->sentinel;
}

/* Which of the two. The reply is an address and a port, each behind its
 * length. */
static unsigned
master_of(struct redis_house *house)
{
    char reply[256], port[16];

    redis_say(house->sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME main", reply,
              sizeof(reply));
    for (unsigned i = 0; i < 2; i++) {
        snprintf(port, sizeof(port), "\r\n%u\r\n",
                 redis_port(house->servers[i]));
        if (strstr(reply, port))
            return i;
    }
    fail_msg("the Sentinel says %s", reply);
    return 0;
}

struct redis *
redis_house_master(struct redis_house *house)
{
    return house->servers[master_of(house)];
}

struct redis *
redis_house_other(struct redis_house *house)
{
    return house->servers[!master_of(house)];
}

struct succession {
    struct redis_house *house;
    unsigned old;
};

static bool
has_another_master(void *with)
{
    const struct succession *succession = with;
    char reply[64];

    if (master_of(succession->house) == succession->old)
        return false;
    redis_say(succession->house->servers[!succession->old], "ROLE", reply,
              sizeof(reply));
    return strstr(reply, "\r\nmaster\r\n") != NULL;
}

void
redis_house_fail_over(struct redis_house *house)
{
    struct succession succession = {house, master_of(house)};

    redis_kill(house->servers[succession.old]);
    if (!child_wait_until(has_another_master, &succession, PATIENCE_MS))
        fail_msg("the Sentinel has made nobody the master");
    redis_restart(house->servers[succession.old]);
}

/* The Sentinel may be about to make another one the master, so that all is
 * asked anew each time; to follow whom one follows already changes nothing. */
static bool
is_joined(void *with)
{
    struct redis_house *house = with;
    struct redis *master = redis_house_master(house);
    struct redis *other = house->servers[master == house->servers[0]];
    char command[64], reply[64];

    if (has_replica(master))
        return true;
    snprintf(command, sizeof(command), "REPLICAOF 127.0.0.1 %u",
             redis_port(master));
    redis_say(other, command, reply, sizeof(reply));
    return false;
}

void
redis_house_rejoin(struct redis_house *house)
{
    if (!child_wait_until(is_joined, house, PATIENCE_MS))
        fail_msg("the other server does not follow the master");
}
