#ifndef SHIELD_URL_H
#define SHIELD_URL_H

#include <idem/status.h>

/* Where a Redis is and how to get in. */
struct shield_url {
    char host[256]; /* a name or an address; "" with a path */
    char port[8];   /* "6379" */
    char path[108]; /* of a unix socket; "" with a host */
    char user[128]; /* "": the default user */
    char password[512];
    unsigned db;
};

/**
 * Read "redis://[[user]:password@]host[:port][/db]" or
 * "unix://[[user]:password@]/path[?db=N]". User and password are
 * percent-decoded; an IPv6 address is in brackets.
 *
 * @retval IDEM_INVALID_ARGUMENT  says what is wrong, without the password
 */
enum idem_status shield_url_parse(struct shield_url *url, const char *text,
                                  struct idem_error *err) IDEM_MUST_CHECK;

#endif
