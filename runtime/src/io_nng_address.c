#include "io_nng_address.h"

#include <nng/nng.h>

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Network order, as nng has it. */
static unsigned
port_of(const uint16_t *port)
{
    const uint8_t *bytes = (const uint8_t *)port;

    return (unsigned)(bytes[0] << 8 | bytes[1]);
}

static void
write_tcp_address(char *text, size_t room, const nng_sockaddr *address)
{
    const uint8_t *ip = (const uint8_t *)&address->s_in.sa_addr;

    snprintf(text, room, "tcp://%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3],
             port_of(&address->s_in.sa_port));
}

static void
write_tcp6_address(char *text, size_t room, const nng_sockaddr *address)
{
    char ip[INET6_ADDRSTRLEN];

    if (inet_ntop(AF_INET6, address->s_in6.sa_addr, ip, sizeof ip))
        snprintf(text, room, "tcp://[%s]:%u", ip,
                 port_of(&address->s_in6.sa_port));
}

static bool
write_address(char *text, size_t room, const nng_sockaddr *address)
{
    switch (address->s_family) {
    case NNG_AF_INET:
        write_tcp_address(text, room, address);
        return true;
    case NNG_AF_INET6:
        write_tcp6_address(text, room, address);
        return true;
    case NNG_AF_IPC:
        snprintf(text, room, "ipc://%s", address->s_ipc.sa_path);
        return address->s_ipc.sa_path[0];
    case NNG_AF_ABSTRACT:
        snprintf(text, room, "abstract://%.*s", (int)address->s_abstract.sa_len,
                 (const char *)address->s_abstract.sa_name);
        return address->s_abstract.sa_len > 0;
    default:
        return false;
    }
}

void
io_nng_peer(struct nng_stream *stream, char *text, size_t room)
{
    nng_sockaddr address;

    text[0] = 0;
    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &address) == 0 &&
        write_address(text, room, &address))
        return;
    if (nng_stream_get_addr(stream, NNG_OPT_LOCADDR, &address) == 0)
        (void)write_address(text, room, &address);
}
