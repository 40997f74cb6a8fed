#include "fuzz_client.h"

#include "channel.h"
#include "fuzz_peer.h"
#include "header.h"

#include <stdlib.h>

static struct idem_channel *channel;
static struct fuzz_peer peer;

/* --- Its time --- */

#define HASTE 1000

static struct idem_clock hasty; /* else as the system's */

static int64_t
monotonic_ns(const struct idem_clock *clock)
{
    const struct idem_clock *real = idem_clock_system();

    (void)clock;
    return real->monotonic_ns(real) * HASTE;
}

static void
wait_until(const struct idem_clock *clock, pthread_cond_t *condition,
           pthread_mutex_t *mutex, int64_t at_ns)
{
    const struct idem_clock *real = idem_clock_system();

    (void)clock;
    real->wait_until(real, condition, mutex,
                     at_ns == INT64_MAX ? INT64_MAX : at_ns / HASTE);
}

/* --- The channel --- */

static void
stop(void)
{
    if (peer.wire)
        fuzz_peer_close(&peer);
    idem_channel_close(channel);
}

struct idem_channel *
fuzz_client_channel(struct idem_interceptor *(*with)(void))
{
    const struct idem_channel_options options = {
        .max_message = 8192,
        .stream_window = FUZZ_CLIENT_WINDOW,
        .connect_backoff_ms = 1,
        .connect_backoff_max_ms = 1,
        /* One that it ended takes streams that its peer never saw. */
        .keepalive_ms = INT64_MAX,
        .clock = &hasty,
        .compression = {.codec = IDEM_CODEC_ZSTD, .threshold = 64},
    };

    if (channel)
        return channel;
    hasty = *idem_clock_system();
    hasty.monotonic_ns = monotonic_ns;
    hasty.wait_until = wait_until;
    IDEM_ASSERT(channel_new_with_io(&channel, &fuzz_wire_io, FUZZ_WIRE_ADDRESS,
                                    &options, NULL) == IDEM_OK);
    if (with)
        IDEM_ASSERT(idem_channel_add(channel, with(), NULL) == IDEM_OK);
    atexit(stop);
    return channel;
}

/* --- Its server --- */

static void
greet(void)
{
    uint8_t hello[FUZZ_HELLO_MAX];

    fuzz_peer_accept(&peer);
    (void)fuzz_peer_send(
        &peer,
        (struct idem_bytes){hello, fuzz_put_hello(hello, FUZZ_CLIENT_WINDOW)});
}

static void
note_open(struct fuzz_steps *steps, const struct frame *frame)
{
    struct fuzz_account account = {.given = FUZZ_CLIENT_WINDOW};
    char session[IDEM_SESSION_MAX];
    struct header_open open;
    int64_t first = 0;

    IDEM_ASSERT(header_open_read(frame->header, &open));
    account.numbered = open.streams & HEADER_EACH;
    account.asks = account.numbered && (open.streams & IDEM_STREAMS_SERVER);
    if (account.numbered)
        IDEM_ASSERT(idem_session_split(open.key, session, &first));
    account.first = (uint64_t)first;
    if (steps->opened == 0)
        steps->first = frame->stream;
    if (steps->opened < FUZZ_STREAMS_MAX)
        steps->accounts[steps->opened++] = account;
}

/* False: the client has closed the connection. */
static bool
hear(struct fuzz_steps *steps, struct frame *frame)
{
    if (!fuzz_peer_next(&peer, frame)) {
        fuzz_peer_close(&peer);
        return false;
    }
    if (frame->type == FRAME_OPEN)
        note_open(steps, frame);
    else
        fuzz_steps_check(steps, frame);
    return true;
}

/* Those that were on a connection that is gone are over, or come again on the
 * next, as the others do. */
static void
await_opens(struct fuzz_steps *steps, unsigned streams)
{
    unsigned opens = 0;
    struct frame frame;

    while (opens < streams) {
        if (!peer.wire)
            greet();
        if (!hear(steps, &frame))
            steps->opened = 0;
        else
            opens += frame.type == FRAME_OPEN;
    }
}

void
fuzz_client_talk(struct fuzz_steps *steps, unsigned streams)
{
    static uint8_t bytes[FUZZ_STEPS_MAX + FUZZ_PING_MAX];
    struct frame frame;

    steps->window = FUZZ_CLIENT_WINDOW;
    steps->bytes = bytes;
    await_opens(steps, streams);
    fuzz_steps_write(steps);
    steps->size += fuzz_put_ping(bytes + steps->size);
    (void)fuzz_peer_send(&peer, (struct idem_bytes){bytes, steps->size});
    while (hear(steps, &frame) && !fuzz_is_pong(&frame))
        ;
}

void
fuzz_client_settle(void)
{
    uint8_t ping[FUZZ_PING_MAX];
    struct frame frame;

    if (!peer.wire)
        return;
    (void)fuzz_peer_send(&peer, (struct idem_bytes){ping, fuzz_put_ping(ping)});
    do {
        if (!fuzz_peer_next(&peer, &frame)) {
            fuzz_peer_close(&peer);
            return;
        }
    } while (!fuzz_is_pong(&frame));
}
