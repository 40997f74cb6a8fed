/* Calls in a loop of one's own, with poll(2):
 *
 *    loop_poll ADDRESS HOW_MANY
 *
 * buys a ticket so many times at once, from one thread, and says how many are
 * left. */
#include "shop.idem.h"

#include <err.h>
#include <errno.h>
#include <idem/standard.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

struct errand {
    unsigned left_to_do;
    long tickets;
};

/* Runs in idem_channel_process, on the loop's thread: no lock is needed. */
static void
bought(struct idem_call *call, const shop_buy_reply *reply,
       const struct idem_outcome *outcome)
{
    struct errand *errand = idem_call_user(call);

    errand->left_to_do--;
    if (!reply)
        errx(1, "%s: %s", idem_status_name(outcome->status), outcome->message);
    if (errand->tickets < 0 || reply->left < errand->tickets)
        errand->tickets = (long)reply->left;
}

static void
run_loop(struct idem_channel *channel, const struct errand *errand)
{
    struct pollfd fds[] = {{idem_channel_fd(channel), POLLIN, 0}};

    while (errand->left_to_do > 0) {
        if (poll(fds, 1, -1) < 0 && errno != EINTR)
            err(1, "poll");
        if (fds[0].revents)
            idem_channel_process(channel);
    }
}

int
main(int argc, char **argv)
{
    const struct idem_channel_options own = {.own_loop = true};
    struct errand errand = {0, -1};
    const struct idem_call_options options = {.user = &errand};
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    struct idem_channel *channel;
    struct idem_error error;

    if (argc != 3 || atoi(argv[2]) < 1)
        errx(64, "loop_poll ADDRESS HOW_MANY");
    if (idem_client_open(&channel, argv[1], &own, &error))
        errx(1, "%s", error.message);
    request.tickets = 1;
    errand.left_to_do = (unsigned)atoi(argv[2]);
    for (unsigned n = errand.left_to_do; n > 0; n--)
        idem_call_release(shop_buy_async(channel, &request, &options, bought));
    run_loop(channel, &errand);
    printf("%ld left\n", errand.tickets);
    idem_channel_close(channel);
    return 0;
}
