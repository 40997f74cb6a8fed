#include "server_each.h"

#include "parent.h"
#include "stream.h"

/* The call of a message: a unary one, which begins at the band LIMIT. */

/* The stream's call stays until this one is over. */
static void
finish(struct call *base)
{
    struct each *each = server_call_of(base)->of_stream;
    struct idem_stream *stream = each->stream->call.stream;
    struct call *call = stream->call;

    call_ref(call);
    pthread_mutex_lock(&stream->lock);
    each->is_over = true;
    pthread_mutex_unlock(&stream->lock);
    stream_deliver(stream);
    call_unref(call);
}

static void
free_message(struct call *base)
{
    struct connection *connection = server_call_of(base)->peer->connection;

    context_fini(&server_call_of(base)->context);
    call_fini(base); /* and with the arena the call itself */
    connection_unref(connection);
}

static const struct call_ops message_ops = {
    endpoint_send, finish, free_message, NULL, NULL,
};

/* Where its walk begins: who calls and whether he may was asked of the stream.
 */
static unsigned
first_place(const struct chain *chain)
{
    unsigned place = 0;

    while (place < chain->count &&
           chain->at[place]->ops->band < IDEM_BAND_LIMIT)
        place++;
    return place;
}

/* What is known of the stream's call holds for its messages too. */
static bool
inherit(struct server_call *call, const struct server_call *stream)
{
    struct idem_call *base = &call->call.base;
    const struct idem_call *of = &stream->call.base;

    base->attempt = of->attempt;
    base->deadline_ns = of->deadline_ns;
    base->tenant = of->tenant;
    base->principal = of->principal;
    base->peer = of->peer;
    call->entry = stream->entry;
    context_init(&call->context, base, stream->entry->user);
    call->context.run = endpoint_run;
    call->context.plain = stream->context.plain;
    if (!call_copy_metadata(base, of))
        return false;
    if (base->metadata.first)
        parent_take_fence(&call->context);
    return true;
}

static bool
fill(struct server_call *call, struct each *each, struct idem_bytes request)
{
    const struct stream_each *numbers = each->stream->call.stream->each;
    struct idem_call *base = &call->call.base;
    char key[IDEM_KEY_MAX + 1];

    idem_key_of_session(key, numbers->session, numbers->watermark + 1);
    base->key = idem_bytes_of(key);
    base->key.data = idem_arena_copy(base->arena, base->key);
    base->request = (struct idem_bytes){idem_arena_copy(base->arena, request),
                                        request.size};
    return base->key.data && base->request.data && inherit(call, each->stream);
}

struct server_call *
each_message_new(struct each *each, const struct idem_method *method,
                 struct idem_bytes request)
{
    struct idem_stream *stream = each->stream->call.stream;
    struct server_call *call =
        server_call_make(each->stream->peer, &message_ops, request.size);

    if (!call)
        return NULL;
    call->of_stream = each;
    call->call.base.method = method;
    call->call.top = first_place(call->call.chain);
    call->call.cursor = call->call.reached = call->call.top;
    if (!fill(call, each, request)) {
        call_unref(&call->call);
        return NULL;
    }
    pthread_mutex_lock(&stream->lock);
    call->call.base.ack_below = stream->each->acked;
    pthread_mutex_unlock(&stream->lock);
    return call;
}
