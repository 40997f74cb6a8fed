/* A stream of each kind, client and server in one program.
 *
 *    board [ADDRESS]    serves there ("inproc://board"), calls and prints */
#include "board.idem.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* --- The server, in blocking style --- */

static enum idem_status
watch(struct idem_context *context, const board_watch_request *request,
      struct board_watch_server_stream *stream)
{
    enum idem_status status = IDEM_OK;

    (void)context;
    for (uint32_t i = 1; i <= request->count && status == IDEM_OK; i++) {
        board_price price = BOARD_PRICE_INIT;

        price.thing = request->thing;
        price.cents = 100 * i;
        status = board_watch_send(stream, &price); /* waits for room */
    }
    return status;
}

static enum idem_status
sum(struct idem_context *context, struct board_sum_server_stream *stream,
    board_sum_reply *reply)
{
    const board_price *price;

    (void)context;
    while ((price = board_sum_receive(stream))) {
        reply->count++;
        if (price->cents > reply->highest)
            reply->highest = price->cents;
    }
    return IDEM_OK; /* one that was given up ends as that all the same */
}

/* --- In callbacks --- */

static bool
tax_price(struct board_tax_server_stream *stream, const board_price *price)
{
    board_price taxed = *price;

    taxed.cents += price->cents / 10;
    /* No room: the price comes again when there is some. */
    return board_tax_send(stream, &taxed) != IDEM_UNAVAILABLE;
}

static void
end_tax(struct board_tax_server_stream *stream, enum idem_status status)
{
    board_tax_close(stream, status);
}

static enum idem_status
tax(struct idem_context *context, struct board_tax_server_stream *stream)
{
    static const struct board_tax_server_callbacks callbacks = {
        .message = tax_price,
        .end = end_tax,
    };

    (void)context;
    board_tax_serve(stream, &callbacks, NULL);
    return IDEM_OK; /* the call goes on until it is closed */
}

static const struct board_handlers handlers = {
    .watch = watch,
    .sum = sum,
    .tax = tax,
};

static void
must(enum idem_status status, const char *what)
{
    if (status == IDEM_OK)
        return;
    fprintf(stderr, "board: %s\n", what);
    exit(1);
}

static struct idem_server *
serve(const char *address)
{
    struct idem_server *server;
    struct idem_error err;

    must(idem_server_new(&server, NULL, &err), err.message);
    must(board_register(server, &handlers, NULL, &err), err.message);
    must(idem_server_listen(server, address, &err), err.message);
    must(idem_server_start(server, &err), err.message);
    return server;
}

/* --- The client, in blocking style --- */

static void
watch_tea(struct idem_channel *channel)
{
    board_watch_request request = BOARD_WATCH_REQUEST_INIT;
    struct board_watch_stream *stream;
    struct idem_outcome outcome;
    const board_price *price;
    int64_t last = 0;

    request.thing = "tea";
    request.count = 1000;
    stream = board_watch_open(channel, &request, NULL);
    while ((price = board_watch_next(stream)))
        last = price->cents;
    must(board_watch_finish(stream, &outcome), outcome.message);
    printf("the last price of tea: %" PRId64 "\n", last);
}

static void
sum_prices(struct idem_channel *channel)
{
    struct board_sum_stream *stream = board_sum_open(channel, NULL);
    enum idem_status status = IDEM_OK;
    struct idem_outcome outcome;
    board_sum_reply *reply;

    for (int i = 1; i <= 1000 && status == IDEM_OK; i++) {
        board_price price = BOARD_PRICE_INIT;

        price.cents = i;
        status = board_sum_write(stream, &price); /* waits for room */
    }
    must(board_sum_finish(stream, &reply, &outcome), outcome.message);
    printf("%u prices, the highest %" PRId64 "\n", reply->count,
           reply->highest);
    board_sum_reply_free(reply);
}

/* --- In callbacks --- */

/* One conversation: what is still to be written, and what came. */
struct taxing {
    int64_t next;
    int64_t taxed;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
};

static void
write_prices(struct board_tax_stream *stream)
{
    struct taxing *taxing = board_tax_user(stream);

    for (; taxing->next <= 1000; taxing->next++) {
        board_price price = BOARD_PRICE_INIT;

        price.cents = 100 * taxing->next;
        if (board_tax_write(stream, &price) != IDEM_OK)
            return; /* no room: this runs again when there is some */
    }
    board_tax_end(stream);
}

static bool
take_taxed(struct board_tax_stream *stream, const board_price *price)
{
    struct taxing *taxing = board_tax_user(stream);

    taxing->taxed += price->cents;
    return true;
}

static void
note_end(struct board_tax_stream *stream, const struct idem_outcome *outcome)
{
    struct taxing *taxing = board_tax_user(stream);

    must(outcome->status, outcome->message);
    pthread_mutex_lock(&taxing->lock);
    taxing->over = true;
    pthread_cond_signal(&taxing->changed);
    pthread_mutex_unlock(&taxing->lock);
}

static void
tax_prices(struct idem_channel *channel)
{
    static const struct board_tax_callbacks callbacks = {
        .message = take_taxed,
        .writable = write_prices,
        .end = note_end,
    };
    struct taxing taxing = {.next = 1,
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    const struct idem_call_options options = {.user = &taxing};
    struct board_tax_stream *stream =
        board_tax_start(channel, &options, &callbacks);

    write_prices(stream); /* the first word is ours */
    pthread_mutex_lock(&taxing.lock);
    while (!taxing.over)
        pthread_cond_wait(&taxing.changed, &taxing.lock);
    pthread_mutex_unlock(&taxing.lock);
    board_tax_release(stream);
    printf("with tax: %" PRId64 "\n", taxing.taxed);
}

int
main(int argc, char **argv)
{
    struct idem_server *server = serve(argc > 1 ? argv[1] : "inproc://board");
    struct idem_channel *channel;
    struct idem_error err;

    must(idem_channel_new(&channel, idem_server_address(server, 0), NULL, &err),
         err.message);
    watch_tea(channel);
    sum_prices(channel);
    tax_prices(channel);
    idem_channel_close(channel);
    idem_server_free(server);
    return 0;
}
