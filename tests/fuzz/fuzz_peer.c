#include "fuzz_peer.h"

#include "codec.h"
#include "header.h"

#include <string.h>

static const char marker[] = "are you there";

/* --- The connection --- */

static void
begin(struct fuzz_peer *peer, struct fuzz_wire *wire)
{
    *peer = (struct fuzz_peer){.wire = wire};
    IDEM_ASSERT(inbox_init(&peer->inbox, 0xffffffff));
}

void
fuzz_peer_connect(struct fuzz_peer *peer)
{
    begin(peer, fuzz_wire_connect());
}

void
fuzz_peer_accept(struct fuzz_peer *peer)
{
    begin(peer, fuzz_wire_accept());
}

void
fuzz_peer_close(struct fuzz_peer *peer)
{
    fuzz_wire_hang_up(peer->wire);
    peer->wire = NULL;
    inbox_fini(&peer->inbox);
}

bool
fuzz_peer_send(struct fuzz_peer *peer, struct idem_bytes bytes)
{
    return fuzz_wire_say(peer->wire, bytes);
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

        size = fuzz_wire_hear(peer->wire, space, room);
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
