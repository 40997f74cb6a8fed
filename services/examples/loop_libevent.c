/* Calls in a loop of libevent's:
 *
 *    loop_libevent ADDRESS HOW_MANY
 *
 * buys a ticket so many times, one every millisecond from a timer of the same
 * loop, and says how many are left. */
#include "shop.idem.h"

#include <err.h>
#include <event2/event.h>
#include <idem/standard.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

struct errand {
    struct event_base *base;
    struct event *timer;
    struct idem_channel *channel;
    unsigned left_to_start, left_to_do;
    long tickets;
};

/* The channel's fd is readable: callbacks wait. */
static void
process(evutil_socket_t fd, short what, void *with)
{
    struct errand *errand = with;

    (void)fd;
    (void)what;
    idem_channel_process(errand->channel);
}

/* Runs in idem_channel_process, on the loop's thread: no lock is needed. */
static void
bought(struct idem_call *call, const shop_buy_reply *reply,
       const struct idem_outcome *outcome)
{
    struct errand *errand = idem_call_user(call);

    if (!reply)
        errx(1, "%s: %s", idem_status_name(outcome->status), outcome->message);
    if (errand->tickets < 0 || reply->left < errand->tickets)
        errand->tickets = (long)reply->left;
    if (--errand->left_to_do == 0)
        event_base_loopbreak(errand->base);
}

static void
buy_one(evutil_socket_t fd, short what, void *with)
{
    struct errand *errand = with;
    const struct idem_call_options options = {.user = errand};
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;

    (void)fd;
    (void)what;
    request.tickets = 1;
    idem_call_release(
        shop_buy_async(errand->channel, &request, &options, bought));
    if (--errand->left_to_start == 0)
        event_del(errand->timer);
}

static void
run_loop(struct errand *errand)
{
    const struct timeval pause = {0, 1000};
    struct event *answers =
        event_new(errand->base, idem_channel_fd(errand->channel),
                  EV_READ | EV_PERSIST, process, errand);

    errand->timer = event_new(errand->base, -1, EV_PERSIST, buy_one, errand);
    event_add(answers, NULL);
    event_add(errand->timer, &pause);
    event_base_dispatch(errand->base);
    event_free(errand->timer);
    event_free(answers);
}

int
main(int argc, char **argv)
{
    const struct idem_channel_options own = {.own_loop = true};
    struct errand errand = {.tickets = -1};
    struct idem_error error;

    if (argc != 3 || atoi(argv[2]) < 1)
        errx(64, "loop_libevent ADDRESS HOW_MANY");
    errand.left_to_start = errand.left_to_do = (unsigned)atoi(argv[2]);
    errand.base = event_base_new();
    if (!errand.base)
        errx(1, "no event base");
    if (idem_client_open(&errand.channel, argv[1], &own, &error))
        errx(1, "%s", error.message);
    run_loop(&errand);
    printf("%ld left\n", errand.tickets);
    idem_channel_close(errand.channel);
    event_base_free(errand.base);
    return 0;
}
