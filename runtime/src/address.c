#include "channel_inside.h"

#include <stdlib.h>
#include <string.h>

/* The states of an address; "-" cannot happen.
 *
 *               dialled     up      failed    lost    rest
 *   IDLE        CONNECTING  -       FAILURE   IDLE    IDLE
 *   CONNECTING  -           READY   FAILURE   -       -
 *   READY       -           -       FAILURE   IDLE    -
 *   FAILURE     FAILURE     READY   FAILURE   -       IDLE
 *
 * Lost in IDLE: a link that drained before is closed. FAILURE is
 * TRANSIENT_FAILURE, which holds until READY (gRFC A62), or until the pause is
 * over and another address does. */

#define TO(state) (IDEM_CHANNEL_##state + 1)

static const unsigned char arrows[][ADDRESS_EVENTS] = {
    [IDEM_CHANNEL_IDLE] =
        {
            [ADDRESS_DIALLED] = TO(CONNECTING),
            [ADDRESS_FAILED] = TO(TRANSIENT_FAILURE),
            [ADDRESS_LOST] = TO(IDLE),
            [ADDRESS_REST] = TO(IDLE),
        },
    [IDEM_CHANNEL_CONNECTING] =
        {
            [ADDRESS_UP] = TO(READY),
            [ADDRESS_FAILED] = TO(TRANSIENT_FAILURE),
        },
    [IDEM_CHANNEL_READY] =
        {
            [ADDRESS_FAILED] = TO(TRANSIENT_FAILURE),
            [ADDRESS_LOST] = TO(IDLE),
        },
    [IDEM_CHANNEL_TRANSIENT_FAILURE] =
        {
            [ADDRESS_DIALLED] = TO(TRANSIENT_FAILURE),
            [ADDRESS_UP] = TO(READY),
            [ADDRESS_FAILED] = TO(TRANSIENT_FAILURE),
            [ADDRESS_REST] = TO(IDLE),
        },
};

void
address_step(struct address *address, enum address_event event)
{
    unsigned to = arrows[address->state][event];

    IDEM_ASSERT(to);
    address->state = (enum idem_channel_state)(to - 1);
    channel_restate(address->channel);
}

/* FNV-1a, then mixed, so that names which differ in a digit lie apart. */
uint64_t
address_hash(struct idem_bytes bytes)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < bytes.size; i++)
        hash = (hash ^ bytes.data[i]) * UINT64_C(1099511628211);
    return address_mix(hash);
}

struct address *
address_new(struct idem_channel *channel, const char *name)
{
    struct address *address = calloc(1, sizeof *address);
    struct idem_error err;

    if (!address)
        return NULL;
    address->io = channel->io;
    address->name = strdup(name);
    if (!address->name ||
        (!address->io && io_find(name, &address->io, &err) != IDEM_OK)) {
        free(address->name);
        free(address);
        return NULL;
    }
    address->channel = channel;
    address->uses = 1;
    address->bit = UINT64_C(1) << (channel->n_made++ % 64);
    address->hash = address_hash(idem_bytes_of(name));
    address->backoff_ms = channel->options.connect_backoff_ms;
    address_dial_init(address);
    return address;
}

void
address_use(struct address *address)
{
    address->uses++;
}

void
address_release(struct address *address)
{
    struct idem_channel *channel = address->channel;
    struct address **at = &channel->addresses;

    if (--address->uses > 0)
        return;
    while (*at != address)
        at = &(*at)->next;
    *at = address->next;
    free(address->name);
    free(address);
    pthread_cond_broadcast(&channel->idle);
}

void
address_drop(struct address *address)
{
    address->dropped = true;
    address_dial_stop(address);
    if (address->link)
        link_retire(address->link);
    address_release(address);
}

bool
address_unwanted(const struct address *address)
{
    return address->dropped || address->channel->closing;
}

static bool
begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* "127.0.0.1:7070", and not "127.bank.test:7070". */
static bool
is_loopback(const char *host)
{
    return begins(host, "[::1]:") || begins(host, "localhost:") ||
           (begins(host, "127.") && host[strspn(host, "0123456789.")] == ':');
}

bool
address_is_local(const char *name)
{
    static const char *const schemes[] = {"ipc://", "unix://", "abstract://",
                                          "inproc://"};
    const char *host;

    if (begins(name, "nng+"))
        name += strlen("nng+");
    host = strstr(name, "://");
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (begins(name, schemes[i]))
            return true;
    return host && begins(name, "tcp") && is_loopback(host + 3);
}
