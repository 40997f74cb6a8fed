#ifndef SHIELD_URL_H
#define SHIELD_URL_H

#include <idem/status.h>

#define SHIELD_HOSTS_MAX 8

enum shield_kind {
    SHIELD_SINGLE,
    SHIELD_SENTINEL, /* hosts are Sentinels, which know where the master is */
    SHIELD_CLUSTER,  /* hosts are some of its nodes */
};

struct shield_place {
    char host[256]; /* a name or an address; "" with a path */
    char port[8];   /* "6379" */
};

/* Where a Redis is and how to get in. */
struct shield_url {
    enum shield_kind kind;
    struct shield_place hosts[SHIELD_HOSTS_MAX];
    unsigned n_hosts;
    char path[108];   /* of a unix socket; "" with a host */
    char master[128]; /* SENTINEL: its name */
    char user[128];   /* "": the default user */
    char password[512];
    char sentinel_user[128], sentinel_password[512]; /* as above */
    unsigned db;
};

/**
 * Read one of
 *
 *   redis://[[user]:password@]host[:port][/db]
 *   unix://[[user]:password@]/path[?db=N]
 *   redis+sentinel://[[user]:password@]host[:port],…/master[/db][?sentinel=…]
 *   redis+cluster://[[user]:password@]host[:port],…
 *
 * User and password are percent-decoded; they are the master's, or of every
 * node. Sentinels are asked with the login behind "?sentinel=",
 * [user]:password, or without one. An IPv6 address is in brackets. Ports: 6379,
 * of Sentinels 26379.
 *
 * @retval IDEM_INVALID_ARGUMENT  says what is wrong, without the password
 */
enum idem_status shield_url_parse(struct shield_url *url, const char *text,
                                  struct idem_error *err) IDEM_MUST_CHECK;

#endif
