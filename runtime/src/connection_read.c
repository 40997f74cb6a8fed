#include "connection_inside.h"

#include "burst.h"
#include "clock_held.h"
#include "codec.h"
#include "plain.h"

#include <string.h>

/* How frames come: a chunk is read, its frames are done one after another, and
 * what they were answered leaves together. */

#define PING_MAX 64     /* bytes of a PING's payload */
#define FRAMES_A_LOOK 4 /* at the time: a look costs a tenth of a frame */

static _Thread_local unsigned depth; /* of events on this thread */

/* Whose frames are being done on this thread; NULL: nobody's. */
static _Thread_local const struct connection *reading;

bool
connection_on_thread(void)
{
    return depth > 0;
}

bool
connection_gathers(const struct connection *connection)
{
    return reading == connection;
}

/* Our preface and SETTINGS, into the queue. */
static void
say_hello(struct connection *connection)
{
    const struct connection_options *options = &connection->options;
    uint8_t preface[FRAME_PREFACE], header[64];
    struct header_settings settings = {
        .version = FRAME_VERSION,
        .max_message = (uint32_t)options->limits.max_message,
        .max_streams = options->limits.max_streams,
        .time_ms = options->clock->wall_ms(options->clock),
        .stream_window = options->limits.stream_window,
        .identity = idem_bytes_of("idem"),
        .codecs = CODECS,
    };
    struct frame frame = {.type = FRAME_SETTINGS, .header = {header, 0}};
    bool fits;

    frame_preface_write(preface);
    frame.header.size = header_settings_write(header, sizeof header, &settings);
    pthread_mutex_lock(&connection->lock);
    fits = outbox_append_bytes(&connection->outbox,
                               (struct idem_bytes){preface, FRAME_PREFACE});
    pthread_mutex_unlock(&connection->lock);
    if (fits)
        connection_send(connection, &frame);
    else
        connection_close(connection, "out of memory");
}

/* nng's transports of unix sockets frame their messages in their own way. */
static bool
is_local(const struct connection *connection)
{
    const char *address = connection->stream->ops->peer(connection->stream);

    return strncmp(address, "ipc", 3) == 0 ||
           strncmp(address, "abstract", 8) == 0;
}

/* Somebody who is not of ours: a plain client? */
static bool
greet_plain(struct connection *connection)
{
    bool local = is_local(connection), fits;
    uint8_t preface[FRAME_PREFACE];

    if (!connection->options.server ||
        !inbox_preface_plain(&connection->inbox, local))
        return false;
    connection->plain = true;
    connection->local = local;
    connection->stage = STAGE_OPEN;
    connection->peer = (struct connection_limits){.max_message = SIZE_MAX,
                                                  .max_streams = UINT32_MAX};
    plain_preface_write(preface);
    pthread_mutex_lock(&connection->lock);
    fits = outbox_append_bytes(&connection->outbox,
                               (struct idem_bytes){preface, FRAME_PREFACE});
    pthread_mutex_unlock(&connection->lock);
    if (!fits)
        return false;
    connection_flush(connection);
    connection->options.events->ready(connection->options.with);
    return true;
}

static const char *
take_settings(struct connection *connection, const struct frame *frame)
{
    struct header_settings settings;

    if (frame->type != FRAME_SETTINGS || frame->oversize)
        return "SETTINGS must come first";
    if (!header_settings_read(frame->header, &settings))
        return "broken SETTINGS";
    connection->peer.max_message =
        settings.max_message ? settings.max_message : SIZE_MAX;
    connection->peer.max_streams =
        settings.max_streams ? settings.max_streams : UINT32_MAX;
    connection->peer.stream_window = settings.stream_window;
    connection->peer.codecs = settings.codecs;
    connection->stage = STAGE_OPEN;
    connection->options.events->ready(connection->options.with);
    return NULL;
}

static const char *
answer_ping(struct connection *connection, const struct frame *ping)
{
    struct frame pong = {.type = FRAME_PONG, .payload = ping->payload};

    const struct connection_events *events = connection->options.events;
    const char *why;

    if (ping->oversize || ping->payload.size > PING_MAX)
        return "a PING that is too long";
    why = events->ping ? events->ping(connection->options.with) : NULL;
    if (why)
        return why;
    connection_send(connection, &pong);
    return NULL;
}

static const char *
take_frame(struct connection *connection, const struct frame *frame)
{
    if (connection->stage == STAGE_SETTINGS)
        return take_settings(connection, frame);
    switch (frame->type) {
    case FRAME_SETTINGS:
    case FRAME_PONG:
        return NULL;
    case FRAME_PING:
        return answer_ping(connection, frame);
    default:
        return connection->options.events->frame(connection->options.with,
                                                 frame);
    }
}

static enum inbox_next
take_preface(struct connection *connection)
{
    enum inbox_next next = inbox_preface(&connection->inbox);

    if (next == INBOX_BROKEN && greet_plain(connection))
        return INBOX_FRAME;
    if (next != INBOX_FRAME)
        return next;
    connection->stage = STAGE_SETTINGS;
    if (connection->options.server)
        say_hello(connection);
    return INBOX_FRAME;
}

static void
set_corked(struct connection *connection, bool corked)
{
    pthread_mutex_lock(&connection->lock);
    connection->corked = corked;
    pthread_mutex_unlock(&connection->lock);
    if (!corked)
        connection_flush(connection);
}

/* The frames so far are done. */
static void
settle(struct connection *connection)
{
    if (connection->options.events->settled)
        connection->options.events->settled(connection->options.with);
    set_corked(connection, false);
}

/* What is held stands still: the real time. */
static int64_t
now(void)
{
    const struct idem_clock *clock = idem_clock_system();

    return clock->monotonic_ns(clock);
}

/* More frames are to come: what the other end can begin with leaves, if that
 * makes both of us work. */
static void
give_head_start(struct connection *connection)
{
    if (!connection->head_start.wanted ||
        !head_start_due(&connection->head_start, now()))
        return;
    settle(connection);
    set_corked(connection, true);
}

/* Everything whole that is in the inbox; returns how many frames. */
static unsigned
digest(struct connection *connection)
{
    enum inbox_next next = INBOX_FRAME;
    const char *why = "not a frame of ours";
    unsigned frames = 0;
    struct frame frame;

    if (connection->stage == STAGE_PREFACE) {
        next = take_preface(connection);
        why = "not a peer of ours";
    }
    while (next == INBOX_FRAME) {
        why = "not a frame of ours";
        next = inbox_next(&connection->inbox, &frame);
        if (next != INBOX_FRAME)
            break;
        atomic_store_explicit(&connection->begun_ns, 0, memory_order_relaxed);
        if (connection->plain)
            frame.stream = ++connection->plain_calls;
        why = take_frame(connection, &frame);
        if (why)
            next = INBOX_BROKEN;
        else if (++frames % FRAMES_A_LOOK == 0)
            give_head_start(connection);
    }
    if (next == INBOX_BROKEN)
        connection_close(connection, why);
    return frames;
}

static void
take_chunk(struct connection *connection)
{
    const struct connection *outer = reading;
    unsigned frames;

    head_start_begin(&connection->head_start, now());
    set_corked(connection, true);
    reading = connection;
    frames = digest(connection);
    reading = outer;
    settle(connection);
    head_start_end(&connection->head_start, frames, now());
}

static void
received(void *with, enum idem_status result, size_t size)
{
    struct connection *connection = with;

    depth++;
    clock_hold();
    burst_begin();
    if (result != IDEM_OK) {
        connection_close(connection, connection_why_lost(
                                         connection, "the connection is lost"));
    } else if (size == 0) {
        connection_close(connection, "closed by the peer");
    } else {
        atomic_fetch_add_explicit(&connection->heard, 1, memory_order_relaxed);
        inbox_filled(&connection->inbox, size);
        take_chunk(connection);
    }
    burst_end();
    connection_read_on(connection);
    clock_let_go();
    depth--;
}

/* The reader ends here, once: nothing is read any more. What waits to be
 * written lets go of what it holds. */
static void
end_reading(struct connection *connection)
{
    depth++;
    connection_flush(connection);
    connection->options.events->closed(connection->options.with);
    connection_unref(connection);
    depth--;
}

/* Before a receive: is there a frame to be finished by it? */
static void
note_begun(struct connection *connection)
{
    const struct idem_clock *clock = connection->options.clock;
    size_t size = inbox_begun(&connection->inbox);

    atomic_store_explicit(&connection->begun_size, size, memory_order_relaxed);
    if (size == 0 || connection->paused)
        atomic_store_explicit(&connection->begun_ns, 0, memory_order_relaxed);
    else if (atomic_load_explicit(&connection->begun_ns,
                                  memory_order_relaxed) == 0)
        atomic_store_explicit(&connection->begun_ns, clock->monotonic_ns(clock),
                              memory_order_relaxed);
}

void
connection_read_on(struct connection *connection)
{
    const struct io_stream_ops *ops = connection->stream->ops;
    bool closed;
    size_t room;
    uint8_t *space;

    pthread_mutex_lock(&connection->lock);
    closed = connection->closed;
    connection->paused = !closed && connection->options.server &&
                         connection->sending &&
                         connection_unwritten(connection) > CONNECTION_OUT_MAX;
    if (connection->options.server)
        note_begun(connection);
    if (connection->paused) {
        pthread_mutex_unlock(&connection->lock);
        return;
    }
    pthread_mutex_unlock(&connection->lock);
    space = inbox_space(&connection->inbox, &room);
    if (!closed &&
        ops->recv(connection->stream, space, room, received, connection))
        return;
    connection_close(connection, connection_why_lost(connection, "closed"));
    end_reading(connection);
}

void
connection_start(struct connection *connection)
{
    connection_ref(connection);
    if (!connection->options.server)
        say_hello(connection);
    connection_read_on(connection);
}
