/* The floor of the machine: one thread a side, epoll, whole batches of frames
 * read and written at once, no runtime. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "envelope.h"

#define IN_ROOM (2 * ENVELOPE_ROOM)
#define EVENTS 64

struct wire {
    int fd;
    uint8_t *in, *out;
    size_t in_size, out_size, out_room, sent;
    bool blocked; /* waits until the socket takes more */
};

/* The client's: one call after another in each place. */
struct place {
    struct wire *wire;
    int64_t since_ns;
};

struct loop {
    int epoll, listener; /* -1: a client */
    const struct side_options *options;
    struct tally *tally;
    struct place *places;
};

union address {
    struct sockaddr any;
    struct sockaddr_in tcp;
    struct sockaddr_un ipc;
};

static void
must(bool good, const char *what)
{
    if (!good)
        side_die(what, strerror(errno));
}

/* "tcp://127.0.0.1:PORT" or "ipc://PATH"; its length. */
static socklen_t
read_address(const char *text, union address *address)
{
    memset(address, 0, sizeof *address);
    if (strncmp(text, "tcp://", 6) == 0) {
        address->tcp.sin_family = AF_INET;
        address->tcp.sin_port = htons((uint16_t)atoi(strrchr(text, ':') + 1));
        address->tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return sizeof address->tcp;
    }
    address->ipc.sun_family = AF_UNIX;
    snprintf(address->ipc.sun_path, sizeof address->ipc.sun_path, "%s",
             text + strlen("ipc://"));
    return sizeof address->ipc;
}

static void
watch(const struct loop *loop, struct wire *wire, int how, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = wire};

    must(epoll_ctl(loop->epoll, how, wire ? wire->fd : loop->listener,
                   &event) == 0,
         "epoll");
}

static struct wire *
wire_new(const struct loop *loop, int fd)
{
    struct wire *wire = calloc(1, sizeof *wire);
    int one = 1;

    must(wire && (wire->in = malloc(IN_ROOM)), "memory");
    wire->fd = fd;
    must(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    watch(loop, wire, EPOLL_CTL_ADD, EPOLLIN);
    return wire;
}

static void
wire_free(struct wire *wire)
{
    close(wire->fd);
    free(wire->in);
    free(wire->out);
    free(wire);
}

/* Room for one more frame behind those that wait. */
static uint8_t *
reserve(struct wire *wire)
{
    if (wire->out_room - wire->out_size < ENVELOPE_ROOM) {
        wire->out_room = 2 * (wire->out_size + ENVELOPE_ROOM);
        wire->out = realloc(wire->out, wire->out_room);
        must(wire->out, "memory");
    }
    return wire->out + wire->out_size;
}

static void
flush(const struct loop *loop, struct wire *wire)
{
    bool blocked = false;

    while (wire->sent < wire->out_size && !blocked) {
        ssize_t n = send(wire->fd, wire->out + wire->sent,
                         wire->out_size - wire->sent, MSG_NOSIGNAL);

        blocked = n < 0;
        must(n >= 0 || errno == EAGAIN || loop->listener >= 0, "send");
        if (n > 0)
            wire->sent += (size_t)n;
    }
    if (!blocked)
        wire->sent = wire->out_size = 0;
    if (blocked != wire->blocked)
        watch(loop, wire, EPOLL_CTL_MOD,
              blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
    wire->blocked = blocked;
}

static void
call_from(struct loop *loop, uint32_t number)
{
    struct place *place = &loop->places[number];
    uint8_t *frame = reserve(place->wire);

    place->since_ns = now_ns();
    place->wire->out_size += envelope_request(
        frame, number, loop->options->body, loop->options->bytes);
}

static void
take_frame(struct loop *loop, struct wire *wire, const uint8_t *frame,
           size_t size)
{
    uint32_t number;

    if (loop->listener >= 0) {
        wire->out_size += envelope_answer(reserve(wire), frame, size);
        return;
    }
    number = envelope_check(frame, size, loop->options);
    if (tally_add(loop->tally, loop->places[number].since_ns))
        call_from(loop, number);
}

static void
take_frames(struct loop *loop, struct wire *wire)
{
    size_t at = 0, size;

    while ((size = envelope_size(wire->in + at, wire->in_size - at)) > 0 &&
           size <= wire->in_size - at) {
        take_frame(loop, wire, wire->in + at, size);
        at += size;
    }
    wire->in_size -= at;
    memmove(wire->in, wire->in + at, wire->in_size);
}

/* False: the peer is gone. */
static bool
read_some(struct loop *loop, struct wire *wire)
{
    ssize_t n =
        recv(wire->fd, wire->in + wire->in_size, IN_ROOM - wire->in_size, 0);

    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    wire->in_size += (size_t)n;
    take_frames(loop, wire);
    return true;
}

static void
take_event(struct loop *loop, const struct epoll_event *event)
{
    struct wire *wire = event->data.ptr;

    if (!wire) {
        int fd = accept(loop->listener, NULL, NULL);

        must(fd >= 0, "accept");
        wire_new(loop, fd);
    } else if ((event->events & ~(uint32_t)EPOLLOUT) &&
               !read_some(loop, wire)) {
        wire_free(wire);
    } else {
        flush(loop, wire);
    }
}

static void *
turn(void *with)
{
    struct loop *loop = with;

    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(loop->epoll, events, EVENTS, -1);

        for (int i = 0; i < n; i++)
            take_event(loop, &events[i]);
    }
    return NULL;
}

static int
listen_at(const char *text)
{
    union address address;
    socklen_t size = read_address(text, &address);
    int fd = socket(address.any.sa_family, SOCK_STREAM, 0);
    char ready[128];

    must(bind(fd, &address.any, size) == 0 && listen(fd, 256) == 0, text);
    if (address.any.sa_family == AF_INET) {
        must(getsockname(fd, &address.any, &size) == 0, text);
        snprintf(ready, sizeof ready, "tcp://127.0.0.1:%u",
                 ntohs(address.tcp.sin_port));
        text = ready;
    }
    side_ready(text);
    return fd;
}

static void
serve(const char *address, const char *how)
{
    struct loop loop = {.epoll = epoll_create1(0)};

    (void)how;
    loop.listener = listen_at(address);
    watch(&loop, NULL, EPOLL_CTL_ADD, EPOLLIN);
    turn(&loop);
}

static struct wire *
dial(const struct loop *loop)
{
    union address address;
    socklen_t size = read_address(loop->options->address, &address);
    int fd = socket(address.any.sa_family, SOCK_STREAM, 0);

    must(connect(fd, &address.any, size) == 0, "connect");
    return wire_new(loop, fd);
}

static void
call(const struct side_options *options, struct tally *tally)
{
    static struct loop loop; /* the thread's, to the end */
    struct wire **wires = calloc(options->connections, sizeof(struct wire *));
    pthread_t thread;

    loop = (struct loop){epoll_create1(0), -1, options, tally,
                         calloc(options->in_flight, sizeof *loop.places)};
    must(wires && loop.places, "memory");
    for (unsigned i = 0; i < options->connections; i++)
        wires[i] = dial(&loop);
    for (unsigned i = 0; i < options->in_flight; i++) {
        loop.places[i].wire = wires[i % options->connections];
        call_from(&loop, i);
    }
    for (unsigned i = 0; i < options->connections; i++)
        flush(&loop, wires[i]);
    free(wires);
    must(pthread_create(&thread, NULL, turn, &loop) == 0, "thread");
}

int
main(int argc, char **argv)
{
    static const struct side side = {serve, call};

    return side_main(argc, argv, &side);
}
