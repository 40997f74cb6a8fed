#include "support.h"

#include "loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
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

/* --- Ports that are free --- */

/* Below those that the system gives to whoever connects: one of those may be
 * taken by somebody before it is used, or while its server is started again. */
#define FREE_FIRST 10240
#define FREE_END 32768

/* Tests run at the same time, and a port is not bound before its server is
 * there: so a process has blocks of ports, each for as long as it has a socket
 * of UDP bound to the block's first. */
#define BLOCK 64
#define BLOCKS ((FREE_END - FREE_FIRST) / BLOCK)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static pid_t owner; /* a forked child has blocks of its own */
static unsigned next, end;

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

static bool
claim(unsigned port)
{
    struct sockaddr_in address = address_of(port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return true;
    close(fd);
    return false;
}

static void
claim_block(void)
{
    unsigned from = (unsigned)getpid() % BLOCKS;

    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned port = FREE_FIRST + (from + i) % BLOCKS * BLOCK;

        if (claim(port)) {
            owner = getpid();
            next = port;
            end = port + BLOCK;
            return;
        }
    }
    fail_msg("no block of ports is free");
}

unsigned
loopback_free_port(void)
{
    unsigned port;

    pthread_mutex_lock(&lock);
    do {
        if (owner != getpid() || next == end)
            claim_block();
        port = next++;
    } while (!is_free(port));
    pthread_mutex_unlock(&lock);
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
