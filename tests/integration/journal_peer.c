#include "journal_peer.h"

#include <stdlib.h>

void
journal_peer_meet(struct wire *wire, const struct journal_world *world,
                  uint32_t window, uint32_t max_message)
{
    wire_connect(wire, world->address);
    wire->stream_window = window;
    assert_true(wire_hello(wire, max_message).stream_window > 0);
}

void
journal_peer_open(struct wire *wire, uint32_t stream,
                  const struct header_open *open)
{
    uint8_t header[FRAME_HEADER_MAX];
    struct frame frame = {
        .type = FRAME_OPEN, .stream = stream, .header = {header, 0}};

    frame.header.size = header_open_write(header, sizeof header, open, NULL);
    wire_send(wire, &frame);
}

void
journal_peer_say(struct wire *wire, uint32_t stream, const journal_entry *entry,
                 uint64_t ack_below, uint8_t flags)
{
    size_t size = protobuf_c_message_get_packed_size(&entry->base);
    uint8_t header[64], *bytes = malloc(size + 1);
    const struct header_message said = {.ack_below = ack_below};
    struct frame frame = {.type = FRAME_MESSAGE,
                          .flags = FRAME_FLAG_MESSAGE | flags,
                          .stream = stream,
                          .header = {header, 0},
                          .payload = {bytes, size}};

    assert_non_null(bytes);
    frame.header.size = header_message_write(header, sizeof header, &said);
    protobuf_c_message_pack(&entry->base, bytes);
    wire_send(wire, &frame);
    free(bytes);
}

void
journal_peer_last(struct wire *wire, uint32_t stream)
{
    wire_send(wire, &(struct frame){.type = FRAME_MESSAGE,
                                    .flags = FRAME_FLAG_LAST,
                                    .stream = stream});
}
