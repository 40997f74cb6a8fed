#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dice.h"

#define PAIRS_MAX 128
#define CHUNK 16384
#define CUT_AFTER_MIN 200 /* bytes of answers */
#define CUT_AFTER_MAX 3000

struct pair {
    int client, server;
    int64_t left; /* bytes of answers until the cut */
};

struct proxy {
    int listener, wake;
    char address[64];
    pthread_t thread;
    struct dice dice;             /* the thread's */
    struct pair pairs[PAIRS_MAX]; /* the thread's */
    unsigned n_pairs;             /* the thread's */
    unsigned turn;                /* the thread's */

    pthread_mutex_t lock;
    uint16_t ports[PROXY_TARGETS_MAX]; /* under the lock, with all below */
    unsigned cuts;
    bool over;
};

static int
dial(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* A connection to whoever is next and there; -1: nobody is. */
static int
dial_next(struct proxy *proxy)
{
    for (unsigned i = 0; i < PROXY_TARGETS_MAX; i++) {
        uint16_t port;
        int fd;

        pthread_mutex_lock(&proxy->lock);
        port = proxy->ports[proxy->turn++ % PROXY_TARGETS_MAX];
        pthread_mutex_unlock(&proxy->lock);
        fd = port ? dial(port) : -1;
        if (fd >= 0)
            return fd;
    }
    return -1;
}

static void
welcome(struct proxy *proxy)
{
    struct pair *pair = &proxy->pairs[proxy->n_pairs];
    int one = 1;

    pair->client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    if (pair->client < 0)
        return;
    setsockopt(pair->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    pair->left = dice_between(&proxy->dice, CUT_AFTER_MIN, CUT_AFTER_MAX);
    pair->server = proxy->n_pairs < PAIRS_MAX - 1 ? dial_next(proxy) : -1;
    if (pair->server < 0)
        close(pair->client);
    else
        proxy->n_pairs++;
}

static bool
pass_on(int to, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(to, bytes, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* The answer that would pass is lost, and the connection with it. */
static bool
is_cut(struct proxy *proxy, struct pair *pair, ssize_t size)
{
    bool cut;

    pair->left -= size;
    pthread_mutex_lock(&proxy->lock);
    cut = pair->left <= 0;
    proxy->cuts += cut;
    pthread_mutex_unlock(&proxy->lock);
    return cut;
}

/* Carry what there is in one direction; false: the pair is over. */
static bool
carry(struct proxy *proxy, struct pair *pair, int from, int to)
{
    char bytes[CHUNK];
    ssize_t size = recv(from, bytes, sizeof bytes, 0);

    if (size <= 0)
        return size < 0 && errno == EINTR;
    if (from == pair->server && is_cut(proxy, pair, size))
        return false;
    return pass_on(to, bytes, (size_t)size);
}

static void
part(struct proxy *proxy, unsigned index)
{
    close(proxy->pairs[index].client);
    close(proxy->pairs[index].server);
    proxy->pairs[index] = proxy->pairs[--proxy->n_pairs];
}

/* Backwards: a pair that parts is replaced by one that was seen already. */
static void
carry_all(struct proxy *proxy, const struct pollfd *ready, unsigned n_pairs)
{
    for (unsigned i = n_pairs; i-- > 0;) {
        struct pair *pair = &proxy->pairs[i];
        bool lives = true;

        if (ready[2 * i].revents)
            lives = carry(proxy, pair, pair->client, pair->server);
        if (lives && ready[2 * i + 1].revents)
            lives = carry(proxy, pair, pair->server, pair->client);
        if (!lives)
            part(proxy, i);
    }
}

static bool
is_over(struct proxy *proxy)
{
    bool over;

    pthread_mutex_lock(&proxy->lock);
    over = proxy->over;
    pthread_mutex_unlock(&proxy->lock);
    return over;
}

static void *
run(void *argument)
{
    struct proxy *proxy = argument;
    struct pollfd ready[2 * PAIRS_MAX + 2];

    while (!is_over(proxy)) {
        unsigned n = proxy->n_pairs;

        for (unsigned i = 0; i < n; i++) {
            ready[2 * i] = (struct pollfd){proxy->pairs[i].client, POLLIN, 0};
            ready[2 * i + 1] =
                (struct pollfd){proxy->pairs[i].server, POLLIN, 0};
        }
        ready[2 * n] = (struct pollfd){proxy->listener, POLLIN, 0};
        ready[2 * n + 1] = (struct pollfd){proxy->wake, POLLIN, 0};
        if (poll(ready, 2 * n + 2, -1) < 0)
            continue;
        carry_all(proxy, ready, n);
        if (ready[2 * n].revents)
            welcome(proxy);
    }
    while (proxy->n_pairs > 0)
        part(proxy, proxy->n_pairs - 1);
    return NULL;
}

static bool
listen_somewhere(struct proxy *proxy)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof address;

    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    proxy->wake = eventfd(0, EFD_CLOEXEC);
    if (bind(proxy->listener, (struct sockaddr *)&address, size) ||
        listen(proxy->listener, SOMAXCONN) ||
        getsockname(proxy->listener, (struct sockaddr *)&address, &size) ||
        proxy->wake < 0)
        return false;
    snprintf(proxy->address, sizeof proxy->address, "tcp://127.0.0.1:%u",
             ntohs(address.sin_port));
    return true;
}

struct proxy *
proxy_open(uint64_t seed)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);

    if (!proxy)
        return NULL;
    pthread_mutex_init(&proxy->lock, NULL);
    proxy->dice.state = seed;
    if (listen_somewhere(proxy) &&
        pthread_create(&proxy->thread, NULL, run, proxy) == 0)
        return proxy;
    fprintf(stderr, "demo: the proxy cannot listen: %s\n", strerror(errno));
    free(proxy);
    return NULL;
}

const char *
proxy_address(const struct proxy *proxy)
{
    return proxy->address;
}

void
proxy_aim(struct proxy *proxy, unsigned target, uint16_t port)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->ports[target] = port;
    pthread_mutex_unlock(&proxy->lock);
}

unsigned
proxy_cuts(struct proxy *proxy)
{
    unsigned cuts;

    pthread_mutex_lock(&proxy->lock);
    cuts = proxy->cuts;
    pthread_mutex_unlock(&proxy->lock);
    return cuts;
}

void
proxy_close(struct proxy *proxy)
{
    if (!proxy)
        return;
    pthread_mutex_lock(&proxy->lock);
    proxy->over = true;
    pthread_mutex_unlock(&proxy->lock);
    eventfd_write(proxy->wake, 1);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    close(proxy->wake);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}
