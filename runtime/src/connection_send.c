#include "connection_inside.h"

#include "plain.h"

/* How frames leave: appended to one half of the outbox while the other half
 * flies, one flight at a time.
 *
 *    append, append, flush --take off--> the transport has it --land-->
 *        ^                                                        |
 *        +----------------- what was appended meanwhile ----------+
 */

/* With the lock: is there something for a new flight? What waits after close
 * takes off too, but only to let go of what it holds. */
static bool
take_off(struct connection *connection)
{
    const struct idem_clock *clock = connection->options.clock;

    if (connection->sending || connection->outbox.filling.total == 0)
        return false;
    if (connection->corked && !connection->closed)
        return false;
    connection->sending = true;
    if (connection->options.server)
        connection->flying_ns = clock->monotonic_ns(clock);
    connection->dropping = connection->closed;
    outbox_take_off(&connection->outbox);
    if (connection->dropping)
        outbox_grounded(&connection->outbox);
    return true;
}

/* What streams write in answer leaves in one flight with what is there: this
 * one does not count as over before. */
static void
tell_roomy(struct connection *connection)
{
    bool roomy;

    pthread_mutex_lock(&connection->lock);
    roomy = atomic_load(&connection->crowded) &&
            connection->outbox.filling.total < CONNECTION_CROWDED / 2;
    if (roomy)
        atomic_store(&connection->crowded, false);
    pthread_mutex_unlock(&connection->lock);
    if (roomy && connection->options.events->roomy)
        connection->options.events->roomy(connection->options.with);
}

/* The flight is over. True: the next one has taken off. */
static bool
land(struct connection *connection)
{
    bool again, finish, resume;

    outbox_land(&connection->outbox);
    if (atomic_load(&connection->crowded))
        tell_roomy(connection);
    pthread_mutex_lock(&connection->lock);
    connection->sending = false;
    again = take_off(connection);
    finish = connection->finishing && !again;
    resume = connection->paused &&
             (!again || connection->closed ||
              connection_unwritten(connection) < CONNECTION_OUT_MAX / 2);
    if (resume)
        connection->paused = false;
    pthread_mutex_unlock(&connection->lock);
    if (finish)
        connection_close(connection, "finished");
    if (resume)
        connection_read_on(connection);
    return again;
}

static void sent(void *with, enum idem_status result, size_t size);

#define FLIGHTS_MAX 16 /* of one thread, before the transport's goes on */

/* Hand the next parts of the flight to the transport; at_once: it may take them
 * without a callback. False: all are written, or it is closed. */
static bool
submit(struct connection *connection, bool at_once)
{
    const struct io_stream_ops *ops = connection->stream->ops;
    struct io_stream *stream = connection->stream;
    struct idem_bytes parts[IO_PARTS];
    unsigned n;

    if (connection->dropping)
        return false;
    while ((n = outbox_parts(&connection->outbox, parts, IO_PARTS)) > 0) {
        if (at_once && ops->send_now)
            n = io_skip(parts, n, ops->send_now(stream, parts, n));
        if (n > 0)
            return ops->send(stream, parts, n, sent, connection);
    }
    return false;
}

/* Flight after flight, until the transport has one under way. A thread that
 * finds more each time hands over, so that it is not kept from its own work.
 * With the sender's reference. */
static void
fly(struct connection *connection)
{
    unsigned flights = 0;

    do {
        if (submit(connection, flights++ < FLIGHTS_MAX))
            return;
    } while (land(connection));
    connection_unref(connection);
}

static void
sent(void *with, enum idem_status result, size_t size)
{
    struct connection *connection = with;

    (void)size;
    if (result != IDEM_OK)
        connection_close(
            connection,
            connection_why_lost(connection, "the peer does not read any more"));
    else if (submit(connection, true))
        return;
    if (land(connection))
        fly(connection);
    else
        connection_unref(connection);
}

void
connection_flush(struct connection *connection)
{
    bool flies;

    pthread_mutex_lock(&connection->lock);
    flies = take_off(connection);
    pthread_mutex_unlock(&connection->lock);
    if (!flies)
        return;
    connection_ref(connection);
    fly(connection);
}

/* With the lock. A plain client is told the ends of its calls only. */
static bool
append(struct connection *connection, const struct frame *frame,
       struct outbox_hold hold)
{
    uint8_t front[2][PLAIN_FRONT_MAX];
    struct idem_bytes parts[3], message = {NULL, 0};

    if (!connection->plain)
        return outbox_append(&connection->outbox, frame, hold);
    if (frame->type != FRAME_END || frame->route.size == 0)
        return true;
    plain_answer_write(front, frame, connection->local, parts);
    if (frame->flags & FRAME_FLAG_MESSAGE)
        message = frame->payload;
    return outbox_append_parts(&connection->outbox, parts, 3, message, hold);
}

bool
connection_append(struct connection *connection, const struct frame *frame,
                  struct outbox_hold hold, uint64_t *mark)
{
    bool open, fits = false;

    pthread_mutex_lock(&connection->lock);
    open = !connection->closed && !connection->finishing;
    if (mark)
        *mark = connection->outbox.appended;
    if (open)
        fits = append(connection, frame, hold);
    if (connection_unwritten(connection) > CONNECTION_CROWDED)
        atomic_store(&connection->crowded, true);
    pthread_mutex_unlock(&connection->lock);
    if (open && !fits)
        connection_close(connection, "out of memory");
    return fits;
}

bool
connection_crowded(const struct connection *connection)
{
    return atomic_load(&connection->crowded);
}

void
connection_send(struct connection *connection, const struct frame *frame)
{
    if (connection_append(connection, frame, (struct outbox_hold){0}, NULL))
        connection_flush(connection);
}

bool
connection_reached(struct connection *connection, uint64_t mark)
{
    bool reached;

    pthread_mutex_lock(&connection->lock);
    reached = mark < connection->outbox.taken_off;
    pthread_mutex_unlock(&connection->lock);
    return reached;
}

void
connection_finish(struct connection *connection)
{
    bool now;

    connection_flush(connection);
    pthread_mutex_lock(&connection->lock);
    connection->finishing = true;
    now = !connection->sending && connection->outbox.filling.total == 0;
    pthread_mutex_unlock(&connection->lock);
    if (now)
        connection_close(connection, "finished");
}
