#include "io_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

/* Addresses as nng's transports write them (nng_tcp(7), nng_ipc(7)). */

static enum idem_status
wrong(struct idem_error *err, const char *address, const char *rule)
{
    return idem_fail(err, IDEM_INVALID_ARGUMENT, "\"%s\" is no address: %s",
                     address, rule);
}

static int
family_of(const char *address)
{
    if (strncmp(address, "ipc:", 4) == 0 || strncmp(address, "unix:", 5) == 0)
        return AF_UNIX;
    if (strncmp(address, "tcp4:", 5) == 0)
        return AF_INET;
    return strncmp(address, "tcp6:", 5) == 0 ? AF_INET6 : AF_UNSPEC;
}

static enum idem_status
read_path(struct socket_place *place, const char *address, const char *path,
          struct idem_error *err)
{
    const struct sockaddr_un *where = NULL;

    if (strlen(path) >= sizeof where->sun_path)
        return wrong(err, address, "a path has up to 107 bytes");
    snprintf(place->host, sizeof place->host, "%s", path);
    return IDEM_OK;
}

/* "7070": 0 to 65535, and nothing behind it. */
static bool
read_port(struct socket_place *place, const char *port)
{
    size_t size = strspn(port, "0123456789");

    if (size == 0 || size > 5 || port[size] || strtoul(port, NULL, 10) > 65535)
        return false;
    snprintf(place->port, sizeof place->port, "%.5s", port);
    return true;
}

/* The host's bytes without the brackets of IPv6 ("[::1]"); "*" and "" are any
 * address. NULL: no end of it. Otherwise where the port's colon must be. */
static const char *
read_host(struct socket_place *place, const char *rest)
{
    bool brackets = *rest == '[';
    const char *host = rest + brackets;
    size_t size = strcspn(host, brackets ? "]" : ":");

    if ((brackets && host[size] != ']') || size >= sizeof place->host)
        return NULL;
    if (size != 1 || *host != '*')
        snprintf(place->host, sizeof place->host, "%.*s", (int)size, host);
    return host + size + brackets;
}

enum idem_status
socket_place_read(struct socket_place *place, const char *address,
                  struct idem_error *err)
{
    const char *rest = strstr(address, "://"), *colon;

    memset(place, 0, sizeof *place);
    place->family = family_of(address);
    if (!rest || !rest[3])
        return wrong(err, address, "want scheme://place");
    rest += 3;
    if (place->family == AF_UNIX)
        return read_path(place, address, rest, err);
    if (strchr(rest, '@'))
        return wrong(err, address, "it has a user before the @");
    colon = read_host(place, rest);
    if (!colon)
        return wrong(err, address, "want host:port or [IPv6]:port");
    if (*colon != ':' || !read_port(place, colon + 1))
        return wrong(err, address, "want a port, 0 to 65535, behind a colon");
    return IDEM_OK;
}

socklen_t
socket_path(struct sockaddr_storage *where, const char *path)
{
    struct sockaddr_un *name = (struct sockaddr_un *)where;

    memset(where, 0, sizeof *where);
    name->sun_family = AF_UNIX;
    snprintf(name->sun_path, sizeof name->sun_path, "%s", path);
    return sizeof *name;
}

void
socket_address_write(char text[SOCKET_ADDRESS_MAX],
                     const struct sockaddr_storage *where)
{
    char host[INET6_ADDRSTRLEN];
    const struct sockaddr_in *four = (const struct sockaddr_in *)where;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)where;
    const struct sockaddr_un *local = (const struct sockaddr_un *)where;

    text[0] = '\0';
    if (where->ss_family == AF_INET &&
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host))
        snprintf(text, SOCKET_ADDRESS_MAX, "tcp://%s:%u", host,
                 ntohs(four->sin_port));
    else if (where->ss_family == AF_INET6 &&
             inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host))
        snprintf(text, SOCKET_ADDRESS_MAX, "tcp://[%s]:%u", host,
                 ntohs(six->sin6_port));
    else if (where->ss_family == AF_UNIX && local->sun_path[0])
        snprintf(text, SOCKET_ADDRESS_MAX, "ipc://%s", local->sun_path);
}
