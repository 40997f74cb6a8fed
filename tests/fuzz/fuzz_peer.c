#include "fuzz_peer.h"

#include "codec.h"
#include "header.h"

#include <string.h>

static const char marker[] = "are you there";

/* --- One operation --- */

static void
note(struct fuzz_peer *peer, enum idem_status result, size_t size)
{
    pthread_mutex_lock(&peer->lock);
    peer->done = true;
    peer->result = result;
    peer->size = size;
    pthread_cond_signal(&peer->change);
    pthread_mutex_unlock(&peer->lock);
}

static void
finished(void *with, enum idem_status result, size_t size)
{
    note(with, result, size);
}

static void
opened(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct fuzz_peer *peer = with;

    IDEM_ASSERT(stream || err->message[0]);
    peer->stream = stream;
    note(peer, IDEM_OK, 0);
}

/* Bytes; 0: the connection is closed. */
static size_t
await(struct fuzz_peer *peer, bool taken)
{
    size_t size;

    if (!taken)
        return 0;
    pthread_mutex_lock(&peer->lock);
    while (!peer->done)
        pthread_cond_wait(&peer->change, &peer->lock);
    peer->done = false;
    size = peer->result == IDEM_OK ? peer->size : 0;
    pthread_mutex_unlock(&peer->lock);
    return size;
}

/* --- The connection --- */

static void
begin(struct fuzz_peer *peer)
{
    *peer = (struct fuzz_peer){.stream = NULL};
    pthread_mutex_init(&peer->lock, NULL);
    pthread_cond_init(&peer->change, NULL);
    IDEM_ASSERT(inbox_init(&peer->inbox, 0xffffffff));
}

void
fuzz_peer_connect(struct fuzz_peer *peer, const char *address)
{
    struct io_dialer *dialer;

    begin(peer);
    IDEM_ASSERT(io_inproc.dialer(&io_inproc, address, &dialer, NULL) ==
                IDEM_OK);
    (void)await(peer, dialer->ops->dial(dialer, opened, peer));
    IDEM_ASSERT(peer->stream);
    dialer->ops->free(dialer);
}

void
fuzz_peer_accept(struct fuzz_peer *peer, struct io_listener *listener)
{
    begin(peer);
    (void)await(peer, listener->ops->accept(listener, opened, peer));
    IDEM_ASSERT(peer->stream);
}

void
fuzz_peer_close(struct fuzz_peer *peer)
{
    peer->stream->ops->close(peer->stream);
    peer->stream->ops->free(peer->stream);
    peer->stream = NULL;
    inbox_fini(&peer->inbox);
    pthread_cond_destroy(&peer->change);
    pthread_mutex_destroy(&peer->lock);
}

bool
fuzz_peer_send(struct fuzz_peer *peer, struct idem_bytes bytes)
{
    return await(peer, peer->stream->ops->send(peer->stream, &bytes, 1,
                                               finished, peer)) == bytes.size;
}

/* The preface is not a frame. */
static enum inbox_next
cut(struct fuzz_peer *peer, struct frame *frame)
{
    if (!peer->greeted) {
        enum inbox_next next = inbox_preface(&peer->inbox);

        if (next != INBOX_FRAME)
            return next;
        peer->greeted = true;
    }
    return inbox_next(&peer->inbox, frame);
}

bool
fuzz_peer_next(struct fuzz_peer *peer, struct frame *frame)
{
    enum inbox_next next;

    while ((next = cut(peer, frame)) == INBOX_MORE) {
        size_t room, size;
        uint8_t *space = inbox_space(&peer->inbox, &room);

        size = await(peer, peer->stream->ops->recv(peer->stream, space, room,
                                                   finished, peer));
        if (size == 0)
            return false;
        inbox_filled(&peer->inbox, size);
    }
    IDEM_ASSERT(next == INBOX_FRAME);
    return true;
}

/* --- Frames --- */

size_t
fuzz_put_hello(uint8_t *bytes, uint32_t stream_window)
{
    const struct header_settings mine = {.version = 1,
                                         .max_streams = 100,
                                         .stream_window = stream_window,
                                         .codecs = CODECS};
    uint8_t *header = bytes + FRAME_PREFACE + FRAME_HEAD;
    struct frame frame = {.type = FRAME_SETTINGS};

    frame.header.size = header_settings_write(header, 64, &mine);
    frame_preface_write(bytes);
    frame_head_write(bytes + FRAME_PREFACE, &frame);
    return FRAME_PREFACE + FRAME_HEAD + frame.header.size;
}

size_t
fuzz_put_ping(uint8_t *bytes)
{
    const struct frame frame = {
        .type = FRAME_PING,
        .payload = {(const uint8_t *)marker, sizeof marker}};

    frame_head_write(bytes, &frame);
    memcpy(bytes + FRAME_HEAD, marker, sizeof marker);
    return FRAME_HEAD + sizeof marker;
}

bool
fuzz_is_pong(const struct frame *frame)
{
    return frame->type == FRAME_PONG && frame->payload.size == sizeof marker &&
           memcmp(frame->payload.data, marker, sizeof marker) == 0;
}
