#include "support.h"

#include "loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in
address_of(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Below those that the system gives to whoever connects: one of those may be
 * taken by somebody before it is used, or while its server is started again. */
#define FREE_FIRST 10240
#define FREE_COUNT (32768 - FREE_FIRST)

int
loopback_listen(unsigned *port)
{
    struct sockaddr_in address = address_of(0);
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 128), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static bool
is_free(unsigned port)
{
    struct sockaddr_in address = address_of(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is;

    assert_true(fd >= 0);
    is = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return is;
}

unsigned
loopback_free_port(void)
{
    static atomic_uint next; /* each process begins elsewhere */
    unsigned port;

    do
        port =
            FREE_FIRST +
            ((unsigned)getpid() * 61 + atomic_fetch_add(&next, 1)) % FREE_COUNT;
    while (!is_free(port));
    return port;
}

int
loopback_connect(unsigned port)
{
    struct sockaddr_in address = address_of(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}
