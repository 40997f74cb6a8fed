#include "stream.h"

/* The author's callbacks: in order, one at a time, without a lock held, on
 * whatever thread has news. */

static bool
is_writable(struct idem_stream *stream)
{
    bool writable;

    pthread_mutex_lock(&stream->lock);
    writable = stream->wanting && stream_has_room(stream);
    if (writable)
        stream->wanting = false;
    pthread_mutex_unlock(&stream->lock);
    return writable;
}

static void
deliver_writable(struct idem_stream *stream)
{
    if (stream->glue->writable && is_writable(stream))
        stream->glue->writable(stream, stream->callbacks);
}

/* True: all that came is taken. */
static bool
deliver_messages(struct idem_stream *stream)
{
    while (!atomic_load(&stream->told)) {
        if (!stream->held)
            stream->held = stream_read(stream);
        if (!stream->held)
            return true;
        if (!stream->glue->message(stream, stream->callbacks, stream->held))
            return false;
        stream->held = NULL;
    }
    return false;
}

static void
deliver_due(struct idem_stream *stream)
{
    enum stream_ending ending = STREAM_GOES_ON;
    bool all;

    if (!atomic_load(&stream->told)) {
        ending = stream->side->ending(stream); /* before what came before it */
        deliver_writable(stream);
    }
    all = ending != STREAM_ENDS_NOW && deliver_messages(stream);
    if (stream->failed)
        ending = stream->side->ending(stream);
    if (ending == STREAM_GOES_ON || (ending == STREAM_ENDS && !all))
        return;
    if (!atomic_exchange(&stream->told, true))
        stream->side->tell_end(stream);
}

void
stream_deliver(struct idem_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->again = true;
    if (stream->delivering) {
        pthread_mutex_unlock(&stream->lock);
        return;
    }
    stream->delivering = true;
    while (stream->again) {
        stream->again = false;
        pthread_mutex_unlock(&stream->lock);
        if (stream->side->due)
            stream->side->due(stream);
        else
            deliver_due(stream);
        pthread_mutex_lock(&stream->lock);
    }
    stream->delivering = false;
    pthread_mutex_unlock(&stream->lock);
}
