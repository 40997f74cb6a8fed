#include "support.h"

#include "wire_client.h"

#include "loopback.h"

#include <idem/method.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static void
begin(struct wire *wire, int fd)
{
    struct timeval patience = {.tv_sec = 10};

    *wire = (struct wire){.fd = fd};
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

void
wire_connect(struct wire *wire, const char *address)
{
    const char *port = strrchr(address, ':');

    assert_non_null(port);
    begin(wire, loopback_connect((unsigned)strtoul(port + 1, NULL, 10)));
}

void
wire_accept(struct wire *wire, int listener)
{
    struct timeval patience = {.tv_sec = 10};

    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    begin(wire, accept(listener, NULL, NULL));
}

void
wire_close(struct wire *wire)
{
    close(wire->fd);
    free(wire->bytes);
}

void
wire_write(struct wire *wire, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    while (size > 0) {
        ssize_t n = send(wire->fd, at, size, MSG_NOSIGNAL);

        assert_true(n > 0);
        at += n;
        size -= (size_t)n;
    }
}

void
wire_send(struct wire *wire, const struct frame *frame)
{
    uint8_t head[FRAME_HEAD];

    frame_head_write(head, frame);
    wire_write(wire, head, sizeof head);
    wire_write(wire, frame->header.data, frame->header.size);
    wire_write(wire, frame->payload.data, frame->payload.size);
}

/* At least size bytes. False: closed. */
static bool
fill(struct wire *wire, size_t size)
{
    while (wire->size < size) {
        ssize_t n;

        if (wire->room - wire->size < 65536) {
            wire->room = wire->size + 2 * 65536;
            wire->bytes = realloc(wire->bytes, wire->room);
            assert_non_null(wire->bytes);
        }
        n = recv(wire->fd, wire->bytes + wire->size, wire->room - wire->size,
                 0);
        if (n == 0)
            return false;
        if (n < 0) /* reset, or out of patience */
            return false;
        wire->size += (size_t)n;
    }
    return true;
}

static void
drop(struct wire *wire, size_t size)
{
    wire->size -= size;
    if (wire->size > 0)
        memmove(wire->bytes, wire->bytes + size, wire->size);
}

bool
wire_next(struct wire *wire, struct frame *frame)
{
    struct frame_head head;

    if (wire->taken)
        drop(wire, wire->taken);
    wire->taken = 0;
    if (!fill(wire, FRAME_HEAD))
        return false;
    assert_true(frame_head_read(wire->bytes, &head));
    if (!fill(wire, FRAME_HEAD + (size_t)head.size))
        return false;
    wire->taken = FRAME_HEAD + head.size;
    *frame = (struct frame){
        .type = head.type,
        .flags = head.flags,
        .stream = head.stream,
        .header = {wire->bytes + FRAME_HEAD, head.header},
        .payload = {wire->bytes + FRAME_HEAD + head.header,
                    head.size - head.header},
    };
    return true;
}

struct header_settings
wire_hello(struct wire *wire, uint32_t max_message)
{
    uint8_t preface[FRAME_PREFACE], header[64];
    struct header_settings mine = {.version = 1,
                                   .max_message = max_message,
                                   .max_streams = 100,
                                   .stream_window = wire->stream_window,
                                   .codecs = wire->codecs};
    struct header_settings theirs;
    struct frame frame = {.type = FRAME_SETTINGS, .header = {header, 0}};

    frame_preface_write(preface);
    wire_write(wire, preface, sizeof preface);
    frame.header.size = header_settings_write(header, sizeof header, &mine);
    wire_send(wire, &frame);
    assert_true(fill(wire, FRAME_PREFACE));
    assert_true(frame_preface_check(wire->bytes));
    drop(wire, FRAME_PREFACE);
    assert_true(wire_next(wire, &frame));
    assert_int_equal(frame.type, FRAME_SETTINGS);
    assert_true(header_settings_read(frame.header, &theirs));
    return theirs;
}

void
wire_open(struct wire *wire, uint32_t stream, const struct header_open *open,
          struct idem_bytes payload)
{
    uint8_t header[FRAME_HEADER_MAX];
    struct frame frame = {
        .type = FRAME_OPEN,
        .flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE,
        .stream = stream,
        .header = {header, 0},
        .payload = payload,
    };

    frame.header.size = header_open_write(header, sizeof header, open, NULL);
    wire_send(wire, &frame);
}

void
wire_open_stream(struct wire *wire, uint32_t stream,
                 const struct header_open *open, struct idem_bytes payload)
{
    uint8_t header[FRAME_HEADER_MAX];
    struct frame frame = {
        .type = FRAME_OPEN, .stream = stream, .header = {header, 0}};

    if (!(open->streams & IDEM_STREAMS_CLIENT)) {
        frame.flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
        frame.payload = payload;
    }
    frame.header.size = header_open_write(header, sizeof header, open, NULL);
    wire_send(wire, &frame);
}

void
wire_window(struct wire *wire, uint32_t stream, uint32_t credit)
{
    uint8_t header[16];
    const struct header_window window = {.credit = credit};
    struct frame frame = {
        .type = FRAME_WINDOW, .stream = stream, .header = {header, 0}};

    frame.header.size = header_window_write(header, sizeof header, &window);
    wire_send(wire, &frame);
}

void
wire_await(struct wire *wire, uint8_t type, struct frame *frame)
{
    do
        assert_true(wire_next(wire, frame));
    while (frame->type != type);
}

uint32_t
wire_await_open(struct wire *wire)
{
    struct frame frame;

    wire_await(wire, FRAME_OPEN, &frame);
    return frame.stream;
}

void
wire_answer(struct wire *wire, uint32_t stream, const struct header_end *end,
            struct idem_bytes payload)
{
    uint8_t header[FRAME_HEADER_MAX];
    struct frame frame = {
        .type = FRAME_END,
        .flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE,
        .stream = stream,
        .header = {header, 0},
        .payload = payload,
    };

    frame.header.size = header_end_write(header, sizeof header, end, NULL);
    wire_send(wire, &frame);
}

struct header_end
wire_end(struct wire *wire, uint32_t stream)
{
    struct header_end end;
    struct frame frame;

    do
        assert_true(wire_next(wire, &frame));
    while (frame.type != FRAME_END || (stream && frame.stream != stream));
    assert_true(header_end_read(frame.header, &end));
    return end;
}

void
wire_await_close(struct wire *wire)
{
    struct frame frame;

    while (wire_next(wire, &frame))
        continue;
}

void
wire_ping(struct wire *wire)
{
    static const uint8_t text[] = "are you";
    struct frame frame = {.type = FRAME_PING, .payload = {text, sizeof text}};

    wire_send(wire, &frame);
    wire_await(wire, FRAME_PONG, &frame);
    assert_int_equal(frame.payload.size, sizeof text);
    assert_memory_equal(frame.payload.data, text, sizeof text);
}
