#include "shield_resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <idem/turns.h>

/* Two owners, the user and the thread; the second that lets go frees. */
struct shield_resolve {
    pthread_mutex_t lock; /* guards all but host */
    unsigned owners;
    bool done;
    struct idem_turns *turns; /* NULL when the user is gone */
    char address[SHIELD_ADDRESS_MAX];
    char host[256];
};

/* With the lock held; gives it up. */
static void
let_go(struct shield_resolve *resolve)
{
    bool last = --resolve->owners == 0;

    pthread_mutex_unlock(&resolve->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&resolve->lock);
    free(resolve);
}

static void
look_up(const char *host, char address[SHIELD_ADDRESS_MAX])
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    address[0] = 0;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return;
    if (getnameinfo(found->ai_addr, found->ai_addrlen, address,
                    SHIELD_ADDRESS_MAX, NULL, 0, NI_NUMERICHOST) != 0)
        address[0] = 0;
    freeaddrinfo(found);
}

static void *
run(void *argument)
{
    struct shield_resolve *resolve = argument;
    char address[SHIELD_ADDRESS_MAX];

    look_up(resolve->host, address);
    pthread_mutex_lock(&resolve->lock);
    memcpy(resolve->address, address, sizeof(address));
    resolve->done = true;
    if (resolve->turns)
        idem_turns_ask(resolve->turns);
    let_go(resolve);
    return NULL;
}

bool
shield_is_address(const char *host)
{
    uint8_t address[16];

    return inet_pton(AF_INET, host, address) == 1 ||
           inet_pton(AF_INET6, host, address) == 1;
}

struct shield_resolve *
shield_resolve_start(const char *host, struct idem_turns *turns)
{
    struct shield_resolve *resolve = calloc(1, sizeof(*resolve));
    pthread_t thread;

    if (!resolve)
        return NULL;
    strncpy(resolve->host, host, sizeof(resolve->host) - 1);
    resolve->turns = turns;
    resolve->owners = 2;
    pthread_mutex_init(&resolve->lock, NULL);
    if (pthread_create(&thread, NULL, run, resolve) == 0) {
        pthread_detach(thread);
        return resolve;
    }
    pthread_mutex_destroy(&resolve->lock);
    free(resolve);
    return NULL;
}

bool
shield_resolve_done(struct shield_resolve *resolve,
                    char address[SHIELD_ADDRESS_MAX])
{
    bool done;

    pthread_mutex_lock(&resolve->lock);
    done = resolve->done;
    if (done)
        memcpy(address, resolve->address, SHIELD_ADDRESS_MAX);
    pthread_mutex_unlock(&resolve->lock);
    return done;
}

void
shield_resolve_free(struct shield_resolve *resolve)
{
    if (!resolve)
        return;
    pthread_mutex_lock(&resolve->lock);
    resolve->turns = NULL;
    let_go(resolve);
}
