#include "support.h"

#include "loopback.h"
#include "tcp_proxy.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 128

/* The proxy's thread alone touches the pairs. */
struct pair {
    int client, server; /* -1: free */
    bool asked;         /* the client was the last to send */
    bool doomed;        /* to be closed when the server sends */
};

struct tcp_proxy {
    unsigned port, target;
    int listener, wake;
    pthread_t thread;
    struct pair pairs[PAIRS_MAX];

    pthread_mutex_t lock; /* guards the rest */
    enum tcp_proxy_cut cut;
    char needle[64];
    unsigned times, cuts, trips;
    bool hold, refuse, broken, stop;
    unsigned told, obeyed; /* how often */
    pthread_cond_t obeys;
};

static void
pair_close(struct pair *pair)
{
    if (pair->client >= 0)
        close(pair->client);
    if (pair->server >= 0)
        close(pair->server);
    pair->client = pair->server = -1;
}

static void
welcome(struct tcp_proxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    struct pair *pair = proxy->pairs;
    bool refuse;

    pthread_mutex_lock(&proxy->lock);
    refuse = proxy->refuse;
    pthread_mutex_unlock(&proxy->lock);
    while (pair < proxy->pairs + PAIRS_MAX && pair->client >= 0)
        pair++;
    if (client < 0)
        return;
    if (refuse || pair == proxy->pairs + PAIRS_MAX) {
        close(client);
        return;
    }
    pair->asked = false;
    pair->doomed = false;
    pair->client = client;
    pair->server = loopback_connect(proxy->target);
    if (pair->server < 0)
        pair_close(pair);
}

static enum tcp_proxy_cut
judge(struct tcp_proxy *proxy, const char *bytes, size_t size)
{
    enum tcp_proxy_cut cut = TCP_PROXY_CUT_NEVER;

    pthread_mutex_lock(&proxy->lock);
    if (proxy->times > 0 &&
        memmem(bytes, size, proxy->needle, strlen(proxy->needle))) {
        cut = proxy->cut;
        proxy->times--;
        proxy->cuts++;
    }
    pthread_mutex_unlock(&proxy->lock);
    return cut;
}

static bool
pass_on(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static void
count(struct tcp_proxy *proxy, struct pair *pair, bool from_client)
{
    pthread_mutex_lock(&proxy->lock);
    if (from_client && !pair->asked)
        proxy->trips++;
    pthread_mutex_unlock(&proxy->lock);
    pair->asked = from_client;
}

/* One read from one end to the other. */
static void
carry(struct tcp_proxy *proxy, struct pair *pair, bool from_client)
{
    char bytes[65536];
    int from = from_client ? pair->client : pair->server;
    int to = from_client ? pair->server : pair->client;
    ssize_t n = recv(from, bytes, sizeof(bytes), 0);
    enum tcp_proxy_cut cut = TCP_PROXY_CUT_NEVER;

    if (n > 0)
        count(proxy, pair, from_client);
    if (n > 0 && from_client)
        cut = judge(proxy, bytes, (size_t)n);
    if (cut == TCP_PROXY_CUT_ANSWER)
        pair->doomed = true;
    if (n <= 0 || cut == TCP_PROXY_CUT_BEFORE ||
        (pair->doomed && !from_client) || !pass_on(to, bytes, (size_t)n) ||
        cut == TCP_PROXY_CUT_AFTER)
        pair_close(pair);
}

static void
close_all(struct tcp_proxy *proxy)
{
    for (struct pair *pair = proxy->pairs; pair < proxy->pairs + PAIRS_MAX;
         pair++)
        pair_close(pair);
}

/* What was asked from outside. False: stop. */
static bool
obey(struct tcp_proxy *proxy, bool *hold)
{
    eventfd_t count;
    bool stop;

    eventfd_read(proxy->wake, &count);
    pthread_mutex_lock(&proxy->lock);
    stop = proxy->stop;
    *hold = proxy->hold;
    if (proxy->broken || stop)
        close_all(proxy);
    proxy->broken = false;
    proxy->obeyed = proxy->told;
    pthread_cond_broadcast(&proxy->obeys);
    pthread_mutex_unlock(&proxy->lock);
    return !stop;
}

static void *
run(void *with)
{
    struct tcp_proxy *proxy = with;
    struct pollfd fds[2 + 2 * PAIRS_MAX];
    bool hold = false;

    for (;;) {
        fds[0] = (struct pollfd){proxy->wake, POLLIN, 0};
        fds[1] = (struct pollfd){proxy->listener, POLLIN, 0};
        for (unsigned i = 0; i < PAIRS_MAX; i++) {
            int side = hold ? -1 : proxy->pairs[i].client;

            fds[2 + 2 * i] = (struct pollfd){side, POLLIN, 0};
            side = hold ? -1 : proxy->pairs[i].server;
            fds[3 + 2 * i] = (struct pollfd){side, POLLIN, 0};
        }
        if (poll(fds, 2 + 2 * PAIRS_MAX, -1) <= 0)
            continue;
        if (fds[0].revents && !obey(proxy, &hold))
            return NULL;
        for (unsigned i = 0; i < PAIRS_MAX && !hold; i++) {
            if (fds[2 + 2 * i].revents && proxy->pairs[i].client >= 0)
                carry(proxy, &proxy->pairs[i], true);
            if (fds[3 + 2 * i].revents && proxy->pairs[i].server >= 0)
                carry(proxy, &proxy->pairs[i], false);
        }
        if (fds[1].revents)
            welcome(proxy);
    }
}

struct tcp_proxy *
tcp_proxy_start(unsigned target_port)
{
    struct tcp_proxy *proxy = calloc(1, sizeof(*proxy));

    assert_non_null(proxy);
    proxy->target = target_port;
    proxy->listener = loopback_listen(&proxy->port);
    proxy->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(proxy->wake >= 0);
    for (unsigned i = 0; i < PAIRS_MAX; i++)
        proxy->pairs[i] = (struct pair){.client = -1, .server = -1};
    pthread_mutex_init(&proxy->lock, NULL);
    pthread_cond_init(&proxy->obeys, NULL);
    assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
    return proxy;
}

void
tcp_proxy_free(struct tcp_proxy *proxy)
{
    if (!proxy)
        return;
    pthread_mutex_lock(&proxy->lock);
    proxy->stop = true;
    pthread_mutex_unlock(&proxy->lock);
    eventfd_write(proxy->wake, 1);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    close(proxy->wake);
    pthread_cond_destroy(&proxy->obeys);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

unsigned
tcp_proxy_port(const struct tcp_proxy *proxy)
{
    return proxy->port;
}

void
tcp_proxy_cut(struct tcp_proxy *proxy, enum tcp_proxy_cut cut,
              const char *needle, unsigned times)
{
    assert_true(strlen(needle) < sizeof(proxy->needle));
    pthread_mutex_lock(&proxy->lock);
    proxy->cut = cut;
    strcpy(proxy->needle, needle);
    proxy->times = times;
    pthread_mutex_unlock(&proxy->lock);
}

unsigned
tcp_proxy_cuts(struct tcp_proxy *proxy)
{
    unsigned cuts;

    pthread_mutex_lock(&proxy->lock);
    cuts = proxy->cuts;
    pthread_mutex_unlock(&proxy->lock);
    return cuts;
}

unsigned
tcp_proxy_trips(struct tcp_proxy *proxy)
{
    unsigned trips;

    pthread_mutex_lock(&proxy->lock);
    trips = proxy->trips;
    pthread_mutex_unlock(&proxy->lock);
    return trips;
}

/* Returns when it is so. */
static void
tell(struct tcp_proxy *proxy, bool *flag, bool value)
{
    unsigned turn;

    pthread_mutex_lock(&proxy->lock);
    *flag = value;
    turn = ++proxy->told;
    eventfd_write(proxy->wake, 1);
    while ((int)(proxy->obeyed - turn) < 0)
        pthread_cond_wait(&proxy->obeys, &proxy->lock);
    pthread_mutex_unlock(&proxy->lock);
}

void
tcp_proxy_break(struct tcp_proxy *proxy)
{
    tell(proxy, &proxy->broken, true);
}

void
tcp_proxy_hold(struct tcp_proxy *proxy, int hold)
{
    tell(proxy, &proxy->hold, hold != 0);
}

void
tcp_proxy_refuse(struct tcp_proxy *proxy, int refuse)
{
    tell(proxy, &proxy->refuse, refuse != 0);
}
