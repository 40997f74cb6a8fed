/* nng's own RPC: REQ and REP with contexts. Repeats are off: by default a REQ
 * socket sends a request again after 60 s and at once when a pipe drops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>

#include "envelope.h"

#define SERVER_CONTEXTS 256

struct servant {
    nng_ctx context;
    nng_aio *aio;
    bool sending;
    uint8_t *room;
};

/* One call after another. */
struct place {
    nng_ctx context;
    nng_aio *send, *recv;
    uint32_t number;
    int64_t since_ns;
    const struct side_options *options;
    struct tally *tally;
    uint8_t *room;
};

static void
must(int rv, const char *what)
{
    if (rv != 0)
        side_die(what, nng_strerror(rv));
}

static void *
must_alloc(size_t size)
{
    void *memory = calloc(1, size);

    must(memory ? 0 : NNG_ENOMEM, "memory");
    return memory;
}

static nng_msg *
message_of(const uint8_t *bytes, size_t size)
{
    nng_msg *message;

    must(nng_msg_alloc(&message, 0), "message");
    must(nng_msg_append(message, bytes, size), "message");
    return message;
}

static void
served(void *with)
{
    struct servant *servant = with;
    nng_msg *message = nng_aio_get_msg(servant->aio);

    if (nng_aio_result(servant->aio) != 0) {
        if (!servant->sending)
            return; /* the socket is closed */
        nng_msg_free(message);
    } else if (!servant->sending) {
        size_t size = envelope_answer(servant->room, nng_msg_body(message),
                                      nng_msg_len(message));

        nng_msg_clear(message);
        must(nng_msg_append(message, servant->room, size), "message");
        servant->sending = true;
        nng_aio_set_msg(servant->aio, message);
        nng_ctx_send(servant->context, servant->aio);
        return;
    }
    servant->sending = false;
    nng_ctx_recv(servant->context, servant->aio);
}

static void
start_servants(nng_socket socket)
{
    for (unsigned i = 0; i < SERVER_CONTEXTS; i++) {
        struct servant *servant = must_alloc(sizeof *servant);

        servant->room = must_alloc(ENVELOPE_ROOM);
        must(nng_ctx_open(&servant->context, socket), "context");
        must(nng_aio_alloc(&servant->aio, served, servant), "aio");
        nng_ctx_recv(servant->context, servant->aio);
    }
}

static void
serve(const char *address, const char *how)
{
    nng_socket socket;
    nng_listener listener;
    char ready[128];
    int port;

    (void)how;
    must(nng_rep0_open(&socket), "rep");
    must(nng_listener_create(&listener, socket, address), address);
    must(nng_listener_start(listener, 0), address);
    snprintf(ready, sizeof ready, "%s", address);
    if (nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port) == 0)
        snprintf(ready, sizeof ready, "tcp://127.0.0.1:%d", port);
    start_servants(socket);
    side_ready(ready);
    for (;;)
        pause();
}

static void
send_request(struct place *place)
{
    size_t size = envelope_request(place->room, place->number,
                                   place->options->body, place->options->bytes);

    place->since_ns = now_ns();
    nng_aio_wait(place->send); /* over long ago: its answer came */
    nng_aio_set_msg(place->send, message_of(place->room, size));
    nng_ctx_send(place->context, place->send);
    nng_ctx_recv(place->context, place->recv);
}

static void
answered(void *with)
{
    struct place *place = with;
    nng_msg *message;

    must(nng_aio_result(place->recv), "receive");
    message = nng_aio_get_msg(place->recv);
    if (envelope_check(nng_msg_body(message), nng_msg_len(message),
                       place->options) != place->number)
        side_die("receive", "another call's answer");
    nng_msg_free(message);
    if (tally_add(place->tally, place->since_ns))
        send_request(place);
}

static struct place *
place_new(nng_socket socket, uint32_t number,
          const struct side_options *options, struct tally *tally)
{
    struct place *place = must_alloc(sizeof *place);

    place->number = number;
    place->options = options;
    place->tally = tally;
    place->room = must_alloc(ENVELOPE_ROOM);
    must(nng_ctx_open(&place->context, socket), "context");
    must(nng_aio_alloc(&place->send, NULL, NULL), "aio");
    must(nng_aio_alloc(&place->recv, answered, place), "aio");
    return place;
}

static nng_socket
dial(const char *address)
{
    nng_socket socket;

    must(nng_req0_open(&socket), "req");
    must(nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME,
                           NNG_DURATION_INFINITE),
         "req");
    must(nng_dial(socket, address, NULL, 0), address);
    return socket;
}

static void
call(const struct side_options *options, struct tally *tally)
{
    nng_socket *sockets = must_alloc(options->connections * sizeof *sockets);

    for (unsigned i = 0; i < options->connections; i++)
        sockets[i] = dial(options->address);
    for (unsigned i = 0; i < options->in_flight; i++)
        send_request(
            place_new(sockets[i % options->connections], i, options, tally));
    free(sockets);
}

int
main(int argc, char **argv)
{
    static const struct side side = {serve, call};

    return side_main(argc, argv, &side);
}
