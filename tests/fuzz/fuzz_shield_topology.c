#include "fuzz.h"

#include "shield_topology.h"

#include <stdlib.h>
#include <string.h>

/* What Sentinels and cluster nodes say, and the URL of a Redis: places have a
 * host and a port, slots are within bounds. */

static void
check_place(const struct shield_place *place)
{
    size_t port = strnlen(place->port, sizeof place->port);

    IDEM_ASSERT(memchr(place->host, 0, sizeof place->host));
    IDEM_ASSERT(port > 0 && port < sizeof place->port);
}

static void
range(void *with, const struct shield_place *place, unsigned first,
      unsigned last)
{
    unsigned *n = with;

    check_place(place);
    IDEM_ASSERT(first < SHIELD_SLOTS && last < SHIELD_SLOTS);
    (*n)++;
}

static void
try_url(struct idem_bytes input)
{
    struct shield_url url;
    struct idem_error err = {0};
    char *text = malloc(input.size + 1);

    IDEM_ASSERT(text);
    if (input.size > 0)
        memcpy(text, input.data, input.size);
    text[input.size] = 0;
    if (shield_url_parse(&url, text, &err) == IDEM_OK) {
        IDEM_ASSERT(url.n_hosts <= SHIELD_HOSTS_MAX);
        IDEM_ASSERT(url.n_hosts > 0 || url.path[0]);
        for (unsigned i = 0; i < url.n_hosts; i++)
            check_place(&url.hosts[i]);
    } else {
        IDEM_ASSERT(err.message[0]);
    }
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    struct shield_redirect redirect;
    struct shield_place place;
    unsigned n = 0;

    switch (fuzz_take_byte(&input) % 4) {
    case 0:
        shield_read_cluster(input, "127.0.0.1", range, &n);
        break;
    case 1:
        if (shield_read_master(&place, input, "mine"))
            check_place(&place);
        break;
    case 2:
        if (shield_read_redirect(&redirect, input, "127.0.0.1"))
            check_place(&redirect.place);
        break;
    default:
        try_url(input);
        break;
    }
    IDEM_ASSERT(shield_slot_of(input) < SHIELD_SLOTS);
    return 0;
}
