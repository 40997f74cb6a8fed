#include "shop.idem.h"
#include <err.h>
#include <idem/standard.h>
#include <stdio.h>

int
main(int argc, char **argv)
{
    struct idem_call_options options = {.key = argc > 1 ? argv[1] : NULL};
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    shop_buy_reply *reply = NULL;
    struct idem_channel *channel;
    struct idem_outcome o;

    if (idem_client_open(&channel, "ipc://shop.sock", NULL, NULL))
        errx(1, "not an address");
    request.tickets = 2;
    if (shop_buy(channel, &request, &reply, &options, &o) == IDEM_OK)
        printf("%ld left, ", (long)reply->left);
    printf("%s %s %s %s\n", idem_status_name(o.status),
           idem_effect_name(o.effect), o.key, o.message);
    shop_buy_reply_free(reply);
    idem_channel_close(channel);
    return (int)o.status;
}
