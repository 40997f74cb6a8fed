#include "target_inside.h"

#include "clock_after.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Addresses of a name, looked up on a thread of its own: getaddrinfo(3) takes
 * as long as it likes. So a thread that is inside it when the target is freed
 * is left behind, and frees what it has when it comes out. */

#define PAUSE_MS 1000 /* between two lookups at least, whoever asks */
#define PORT_MAX 65535
#define DNS "dns://"

struct dns {
    struct target base;
    char *host, *port;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    bool stopped;
    bool looking; /* inside the lookup */
    bool asked;   /* target_again */
    bool running; /* the thread is there, and frees dns when it is freed */
    bool freed;
};

/* --- Looking up --- */

static enum idem_status
add_found(struct target_names *names, const struct addrinfo *found,
          struct idem_error *err)
{
    char host[NI_MAXHOST], port[NI_MAXSERV], text[NI_MAXHOST + NI_MAXSERV + 16];
    bool wide = found->ai_family == AF_INET6;
    int rc = getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof host,
                         port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);

    if (rc != 0)
        return idem_fail(err, IDEM_UNAVAILABLE, "%s", gai_strerror(rc));
    snprintf(text, sizeof text, wide ? "[%s]:%s" : "%s:%s", host, port);
    return target_names_add(names, idem_bytes_of(text), err);
}

static enum idem_status
look_up(const char *host, const char *port, struct target_names *names,
        struct idem_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    enum idem_status status = IDEM_OK;
    struct addrinfo *all;
    int rc = getaddrinfo(host, port, &hints, &all);

    if (rc != 0)
        return idem_fail(err, IDEM_UNAVAILABLE, "%s", gai_strerror(rc));
    for (struct addrinfo *at = all; at && status == IDEM_OK; at = at->ai_next)
        status = add_found(names, at, err);
    freeaddrinfo(all);
    return status;
}

/* With the lock. */
static void
tell(struct dns *dns, const struct target_names *names,
     const struct idem_error *why)
{
    const struct target_options *options = &dns->base.options;
    struct idem_error err;

    pthread_mutex_unlock(&dns->lock);
    if (why) {
        idem_fail(&err, IDEM_UNAVAILABLE, "cannot look up %s: %s", dns->host,
                  why->message);
        options->trouble(options->with, &err);
    } else {
        target_tell(&dns->base, names);
    }
    pthread_mutex_lock(&dns->lock);
}

/* With the lock, which is not held over the lookup. */
static void
look_and_tell(struct dns *dns)
{
    const struct target_options *options = &dns->base.options;
    struct target_names names = {.io = options->io};
    struct idem_error err = {0};
    enum idem_status status;

    dns->looking = true;
    pthread_mutex_unlock(&dns->lock);
    status = options->lookup(dns->host, dns->port, &names, &err);
    if (status == IDEM_OK && names.n == 0)
        status = idem_fail(&err, IDEM_UNAVAILABLE, "it has no address");
    pthread_mutex_lock(&dns->lock);
    dns->looking = false;
    if (!dns->stopped)
        tell(dns, &names, status == IDEM_OK ? NULL : &err);
    target_names_fini(&names);
}

/* With the lock: until somebody asks or enough time is over. */
static void
rest(struct dns *dns)
{
    const struct idem_clock *clock = dns->base.options.clock;
    int64_t now_ns = clock->monotonic_ns(clock);
    int64_t soon_ns = clock_after(now_ns, PAUSE_MS);
    int64_t late_ns = clock_after(now_ns, dns->base.options.again_ms);

    while (!dns->stopped) {
        int64_t until_ns = dns->asked && soon_ns < late_ns ? soon_ns : late_ns;

        if (clock->monotonic_ns(clock) >= until_ns)
            return;
        clock->wait_until(clock, &dns->changed, &dns->lock, until_ns);
    }
}

/* --- Its life --- */

static void
destroy(struct dns *dns)
{
    pthread_cond_destroy(&dns->changed);
    pthread_mutex_destroy(&dns->lock);
    free(dns->host);
    free(dns->port);
    free(dns);
}

static void *
run(void *with)
{
    struct dns *dns = with;
    bool freed;

    pthread_mutex_lock(&dns->lock);
    while (!dns->stopped) {
        dns->asked = false;
        look_and_tell(dns);
        if (!dns->stopped)
            rest(dns);
    }
    dns->running = false;
    pthread_cond_broadcast(&dns->changed);
    freed = dns->freed;
    pthread_mutex_unlock(&dns->lock);
    if (freed)
        destroy(dns);
    return NULL;
}

static enum idem_status
dns_start(struct target *target, struct idem_error *err)
{
    struct dns *dns = (struct dns *)target;
    pthread_t thread;

    dns->running = true;
    if (pthread_create(&thread, NULL, run, dns) != 0) {
        dns->running = false;
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "no thread to look up %s on", dns->host);
    }
    pthread_detach(thread);
    return IDEM_OK;
}

static void
dns_again(struct target *target)
{
    struct dns *dns = (struct dns *)target;

    pthread_mutex_lock(&dns->lock);
    dns->asked = true;
    pthread_cond_broadcast(&dns->changed);
    pthread_mutex_unlock(&dns->lock);
}

static void
dns_stop(struct target *target)
{
    struct dns *dns = (struct dns *)target;

    pthread_mutex_lock(&dns->lock);
    dns->stopped = true;
    pthread_cond_broadcast(&dns->changed);
    while (dns->running && !dns->looking)
        pthread_cond_wait(&dns->changed, &dns->lock);
    pthread_mutex_unlock(&dns->lock);
}

static void
dns_free(struct target *target)
{
    struct dns *dns = (struct dns *)target;
    bool running;

    pthread_mutex_lock(&dns->lock);
    dns->freed = true;
    running = dns->running;
    pthread_mutex_unlock(&dns->lock);
    if (!running)
        destroy(dns);
}

static const struct target_ops dns_ops = {
    .start = dns_start,
    .again = dns_again,
    .stop = dns_stop,
    .free = dns_free,
};

bool
target_dns_host(const char *text, char *host, size_t room)
{
    const char *place = text ? text + strlen(DNS) : NULL;
    const char *colon;
    int size;

    if (!text || strncmp(text, DNS, strlen(DNS)) != 0)
        return false;
    colon = strrchr(place, ':');
    size = colon ? (int)(colon - place) : (int)strlen(place);
    if (size > 1 && place[0] == '[' && place[size - 1] == ']') {
        place++;
        size -= 2;
    }
    return snprintf(host, room, "%.*s", size, place) < (int)room;
}

/* "host:port" or "[v6]:port", into two texts of their own. */
static bool
take_place(struct dns *dns, const char *place)
{
    const char *colon = strrchr(place, ':');
    size_t size = colon ? (size_t)(colon - place) : 0;
    char *end;
    long port;

    if (size == 0)
        return false;
    port = strtol(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end || port < 1 || port > PORT_MAX)
        return false;
    if (place[0] == '[' && place[size - 1] == ']') {
        place++;
        size -= 2;
    }
    if (size == 0 || memchr(place, '/', size))
        return false;
    dns->host = strndup(place, size);
    dns->port = strdup(colon + 1);
    return true;
}

enum idem_status
target_dns_new(struct target **out, const char *place,
               const struct target_options *options, struct idem_error *err)
{
    struct dns *dns = calloc(1, sizeof *dns);

    if (!dns)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    dns->base = (struct target){&dns_ops, *options};
    if (!dns->base.options.lookup)
        dns->base.options.lookup = look_up;
    pthread_mutex_init(&dns->lock, NULL);
    pthread_cond_init(&dns->changed, NULL);
    if (!take_place(dns, place)) {
        destroy(dns);
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "target \"dns://%.100s\": want dns://host:port",
                         place);
    }
    if (!dns->host || !dns->port) {
        destroy(dns);
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    }
    *out = &dns->base;
    return IDEM_OK;
}
