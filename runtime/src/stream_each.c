#include "stream_each.h"

#include "stream.h"

#include <string.h>

/* --- The client's --- */

/* The key is the key interceptor's to choose, and it may choose another one as
 * long as nothing took effect. */
static bool
adopt(struct idem_stream *stream)
{
    struct stream_each *each = stream->each;
    char session[IDEM_SESSION_MAX] = "";
    int64_t number;

    if (!idem_session_split(stream->call->base.key, session, &number))
        return false;
    if (strcmp(each->session, session) != 0) {
        memcpy(each->session, session, sizeof session);
        each->watermark = number - 1;
        each->acks = stream->call->base.ack_below > 0;
    }
    return true;
}

void
stream_each_open(struct idem_stream *stream, struct header_open *open,
                 char *text)
{
    struct stream_each *each = stream->each;

    if (!adopt(stream))
        return; /* the server says what is wrong with it */
    each->first = each->watermark + 1;
    each->sent = each->watermark;
    each->acked = each->acks ? (uint64_t)each->first : 0;
    idem_key_of_session(text, each->session, each->first);
    open->key = idem_bytes_of(text);
    open->ack_below = each->acked;
}

uint64_t
stream_each_ack(struct idem_stream *stream)
{
    struct stream_each *each = stream->each;
    uint64_t below = (uint64_t)each->watermark + 1;

    if (!each->acks || below <= each->acked)
        return 0;
    each->acked = below;
    return below;
}

enum idem_status
stream_each_move(struct idem_stream *stream, uint64_t watermark,
                 struct idem_error *err)
{
    struct stream_each *each = stream->each;

    if (watermark > (uint64_t)each->sent)
        return idem_fail(err, IDEM_INTERNAL,
                         "the server's watermark is %llu, and message %lld is "
                         "the last that was sent",
                         (unsigned long long)watermark, (long long)each->sent);
    while (watermark > (uint64_t)each->watermark) {
        each->watermark++;
        backlog_drop(&stream->written);
        stream->advanced = true;
    }
    return IDEM_OK;
}

enum idem_status
stream_each_end(struct idem_stream *stream, uint64_t watermark, bool ok,
                struct idem_error *err)
{
    const struct stream_each *each = stream->each;

    if (!(stream->call->base.method->streams & IDEM_STREAMS_SERVER)) {
        enum idem_status status = stream_each_move(stream, watermark, err);

        if (status != IDEM_OK)
            return status;
    }
    if (!ok || (stream->said_last && each->watermark == each->sent))
        return IDEM_OK;
    return idem_fail(err, IDEM_INTERNAL,
                     "the server says OK behind message %lld, and message %lld "
                     "is the last that was sent%s",
                     (long long)each->watermark, (long long)each->sent,
                     stream->said_last ? "" : ", without an end");
}

void
stream_each_conclude(struct idem_stream *stream)
{
    struct stream_each *each = stream->each;
    struct idem_outcome *outcome = &stream->call->base.outcome;

    pthread_mutex_lock(&stream->lock);
    outcome->watermark = each->watermark;
    if (*each->session)
        idem_key_of_session(outcome->key, each->session, each->watermark + 1);
    pthread_mutex_unlock(&stream->lock);
}

int64_t
idem_stream_watermark(struct idem_stream *stream)
{
    int64_t watermark;

    IDEM_ASSERT(stream->each);
    pthread_mutex_lock(&stream->lock);
    watermark = stream->each->watermark;
    pthread_mutex_unlock(&stream->lock);
    return watermark;
}

bool
idem_stream_key(struct idem_stream *stream, char *text)
{
    struct stream_each *each = stream->each;
    bool known;

    IDEM_ASSERT(each);
    pthread_mutex_lock(&stream->lock);
    known = *each->session;
    if (known)
        idem_key_of_session(text, each->session, each->watermark + 1);
    pthread_mutex_unlock(&stream->lock);
    return known;
}

/* --- The server's --- */

void
stream_each_begin(struct idem_stream *stream)
{
    struct stream_each *each = stream->each;
    bool split =
        idem_session_split(stream->call->base.key, each->session, &each->first);

    IDEM_ASSERT(split);
    each->watermark = each->told = each->first - 1;
}

enum idem_status
stream_each_take_ack(struct idem_stream *stream, uint64_t ack_below,
                     struct idem_error *err)
{
    struct stream_each *each = stream->each;
    uint64_t number = (uint64_t)each->first + stream->n_came;

    if (ack_below > number)
        return idem_fail(err, IDEM_INTERNAL,
                         "message %llu of the session acknowledges all below "
                         "%llu, which is above it",
                         (unsigned long long)number,
                         (unsigned long long)ack_below);
    if (ack_below > each->acked)
        each->acked = ack_below;
    return IDEM_OK;
}

uint64_t
stream_each_tell(struct idem_stream *stream)
{
    struct stream_each *each = stream->each;

    if (stream->call->base.method->streams & IDEM_STREAMS_SERVER)
        return 0;
    each->told = each->watermark;
    return (uint64_t)each->watermark;
}
