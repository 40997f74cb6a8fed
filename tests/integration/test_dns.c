/* Calls to a name with several addresses, which change (docs/placement.md). The
 * resolver is this file's: getaddrinfo(3) of the process. */
#include "support.h"

#include "echo.idem.h"

#include <idem/standard.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVERS 2
#define NAME "pay.test"
#define AWAIT_MS 20000

/* --- What the name has --- */

static struct {
    pthread_mutex_t lock;
    const char *hosts[SERVERS]; /* NULL: no more */
} zone = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
name_has(const char *first, const char *second)
{
    pthread_mutex_lock(&zone.lock);
    zone.hosts[0] = first;
    zone.hosts[1] = second;
    pthread_mutex_unlock(&zone.lock);
}

static struct addrinfo *
entry(const char *host, const char *port, struct addrinfo *next)
{
    struct addrinfo *made = calloc(1, sizeof *made);
    struct sockaddr_in *place = calloc(1, sizeof *place);

    IDEM_ASSERT(made && place);
    place->sin_family = AF_INET;
    place->sin_port = htons((uint16_t)atoi(port));
    IDEM_ASSERT(inet_pton(AF_INET, host, &place->sin_addr) == 1);
    *made = (struct addrinfo){.ai_family = AF_INET,
                              .ai_socktype = SOCK_STREAM,
                              .ai_addr = (struct sockaddr *)(void *)place,
                              .ai_addrlen = sizeof *place,
                              .ai_next = next};
    return made;
}

int
getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
            struct addrinfo **found)
{
    struct addrinfo *all = NULL;
    struct in_addr numeric;

    (void)hints;
    if (inet_pton(AF_INET, host, &numeric) == 1) { /* nng asks, too */
        *found = entry(host, port, NULL);
        return 0;
    }
    if (strcmp(host, NAME) != 0)
        return EAI_NONAME;
    pthread_mutex_lock(&zone.lock);
    for (int i = SERVERS; i-- > 0;)
        if (zone.hosts[i])
            all = entry(zone.hosts[i], port, all);
    pthread_mutex_unlock(&zone.lock);
    if (!all)
        return EAI_AGAIN;
    *found = all;
    return 0;
}

void
freeaddrinfo(struct addrinfo *all)
{
    for (struct addrinfo *next; all; all = next) {
        next = all->ai_next;
        free(all->ai_addr);
        free(all);
    }
}

/* --- Two servers on one port of two hosts --- */

struct world {
    struct idem_server *servers[SERVERS];
    atomic_uint ran[SERVERS];
    struct idem_channel *channel;
    char target[64];
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

static enum idem_status
count(struct idem_context *context, const echo_echo_request *request,
      echo_echo_reply *reply)
{
    (void)request;
    (void)reply;
    atomic_fetch_add((atomic_uint *)idem_context_user(context), 1);
    return IDEM_OK;
}

static void
start_server(struct world *world, unsigned i, const char *address)
{
    static const struct echo_handlers handlers = {.echo = count};
    struct idem_error err;

    must(idem_server_open(&world->servers[i], NULL, NULL, NULL, &err), &err);
    must(echo_register(world->servers[i], &handlers, &world->ran[i], &err),
         &err);
    must(idem_server_listen(world->servers[i], address, &err), &err);
    must(idem_server_start(world->servers[i], &err), &err);
}

static void
open_world(struct world *world, int64_t resolve_ms)
{
    const struct idem_channel_options options = {.balancer =
                                                     IDEM_BALANCER_ROUND_ROBIN,
                                                 .resolve_ms = resolve_ms,
                                                 .connect_backoff_ms = 1,
                                                 .connect_backoff_max_ms = 10};
    const char *port;
    char second[64];
    struct idem_error err;

    memset(world, 0, sizeof *world);
    start_server(world, 0, "tcp://127.0.0.1:0");
    port = strrchr(idem_server_address(world->servers[0], 0), ':') + 1;
    snprintf(second, sizeof second, "tcp://127.0.0.2:%s", port);
    start_server(world, 1, second);
    snprintf(world->target, sizeof world->target, "dns://" NAME ":%s", port);
    must(idem_client_open(&world->channel, world->target, &options, &err),
         &err);
}

static void
close_world(struct world *world)
{
    idem_channel_close(world->channel);
    for (unsigned i = 0; i < SERVERS; i++)
        idem_server_free(world->servers[i]);
}

static void
echo_once(struct world *world)
{
    const struct idem_call_options options = {.wait_for_ready = true,
                                              .timeout_ms = AWAIT_MS};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct idem_outcome outcome;

    if (echo_echo(world->channel, &request, NULL, &options, &outcome) !=
        IDEM_OK)
        fail_msg("%s", outcome.message);
}

/* Calls until the server has one more. */
static void
echo_until_it_comes_to(struct world *world, unsigned server)
{
    unsigned before = atomic_load(&world->ran[server]);

    while (atomic_load(&world->ran[server]) == before)
        echo_once(world);
}

/* How often the channel's description has that. */
static unsigned
described(struct world *world, const char *what)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    unsigned times = 0;

    idem_channel_describe(world->channel, out);
    fclose(out);
    for (const char *at = text; (at = strstr(at, what)); at++)
        times++;
    free(text);
    return times;
}

static unsigned
addresses(struct world *world)
{
    return described(world, "\n  tcp://");
}

static void
all_addresses_of_a_name_get_calls(void **state)
{
    struct world world;

    (void)state;
    name_has("127.0.0.1", "127.0.0.2");
    open_world(&world, 0);
    echo_until_it_comes_to(&world, 0);
    echo_until_it_comes_to(&world, 1);
    assert_int_equal(addresses(&world), 2);
    close_world(&world);
}

static void
what_a_name_has_later_is_called_and_what_it_lost_is_not(void **state)
{
    struct world world;
    unsigned before;

    (void)state;
    name_has("127.0.0.1", NULL);
    open_world(&world, 20);
    echo_once(&world);
    assert_int_equal(atomic_load(&world.ran[0]), 1);
    name_has("127.0.0.1", "127.0.0.2");
    echo_until_it_comes_to(&world, 1);
    name_has("127.0.0.2", NULL);
    while (addresses(&world) > 1)
        echo_once(&world);
    before = atomic_load(&world.ran[0]);
    for (int i = 0; i < 10; i++)
        echo_once(&world);
    assert_int_equal(atomic_load(&world.ran[0]), before);
    close_world(&world);
}

/* A name that cannot be looked up for a while loses nothing. */
static void
a_lookup_that_fails_keeps_what_there_is(void **state)
{
    struct world world;

    (void)state;
    name_has("127.0.0.1", "127.0.0.2");
    open_world(&world, 20);
    echo_until_it_comes_to(&world, 1);
    name_has(NULL, NULL);
    while (!described(&world, "cannot look up " NAME))
        echo_once(&world);
    assert_int_equal(addresses(&world), 2);
    echo_until_it_comes_to(&world, 0);
    echo_until_it_comes_to(&world, 1);
    close_world(&world);
}

/* Long before its time, because an address cannot be reached. */
static void
a_server_that_moved_is_found_again(void **state)
{
    struct world world;

    (void)state;
    name_has("127.0.0.1", NULL);
    open_world(&world, 3600000);
    echo_once(&world);
    name_has("127.0.0.2", NULL);
    idem_server_free(world.servers[0]);
    world.servers[0] = NULL;
    echo_until_it_comes_to(&world, 1);
    close_world(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_addresses_of_a_name_get_calls),
        cmocka_unit_test(
            what_a_name_has_later_is_called_and_what_it_lost_is_not),
        cmocka_unit_test(a_lookup_that_fails_keeps_what_there_is),
        cmocka_unit_test(a_server_that_moved_is_found_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
