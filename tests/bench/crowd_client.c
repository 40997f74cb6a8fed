#include "crowd_client.h"

#include "frame.h"
#include "header.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "echo.idem.h"

#include "measure.h"

#define BODY 64
#define DEAF_BODY 60000
#define DEAF_NS 100000000 /* between two of its calls */
#define IN_MAX 512        /* bytes of what an active one reads at once */
#define OUT_MAX (DEAF_BODY + 512)
#define EVENTS 256
#define HELLO_S 20 /* for all of them */

struct peer {
    int fd; /* -1: closed */
    enum crowd_kind kind;
    uint32_t stream;
    bool greeted;
    int64_t since_ns; /* the call under way */
    uint64_t calls;   /* of this run */
    uint8_t in[IN_MAX];
    size_t size;    /* of in */
    uint64_t skip;  /* bytes of a frame that are not looked at */
    int64_t due_ns; /* DRIP: its next byte */
};

struct crowd_client {
    struct sockaddr_in address;
    int epoll;
    struct peer **peers;
    size_t n, room;
    struct histogram latencies;
    struct crowd_seen seen;
    uint8_t out[OUT_MAX]; /* one at a time */
};

void
crowd_die(const char *what)
{
    fprintf(stderr, "crowd_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

const char *
crowd_kind_name(enum crowd_kind kind)
{
    static const char *const names[] = {
#define CROWD_NAME(name, text) [CROWD_##name] = text,
        CROWD_KIND_LIST(CROWD_NAME)
#undef CROWD_NAME
    };

    return names[kind];
}

/* --- What they say --- */

static size_t
write_hello(uint8_t *bytes)
{
    const struct header_settings mine = {.version = FRAME_VERSION,
                                         .max_streams = 1000};
    uint8_t *header = bytes + FRAME_PREFACE + FRAME_HEAD;
    struct frame frame = {.type = FRAME_SETTINGS};

    frame.header.size = header_settings_write(header, 64, &mine);
    frame_preface_write(bytes);
    frame_head_write(bytes + FRAME_PREFACE, &frame);
    return FRAME_PREFACE + FRAME_HEAD + frame.header.size;
}

/* An Echo of that many bytes. */
static size_t
write_call(uint8_t *bytes, uint32_t stream, size_t body)
{
    const struct header_open open = {
        .method = idem_bytes_of(ECHO_ECHO_METHOD),
        .has_timeout = true,
        .timeout_us = 60000000,
    };
    uint8_t *header = bytes + FRAME_HEAD, *message;
    struct frame frame = {.type = FRAME_OPEN,
                          .flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE,
                          .stream = stream};

    frame.header.size = header_open_write(header, 256, &open, NULL);
    message = header + frame.header.size;
    *message++ = 1 << 3 | 2; /* body */
    for (size_t left = body;; left >>= 7) {
        *message++ = (uint8_t)(left < 0x80 ? left : left | 0x80);
        if (left < 0x80)
            break;
    }
    memset(message, 'b', body);
    message += body;
    frame.payload.size = (size_t)(message - header) - frame.header.size;
    frame_head_write(bytes, &frame);
    return (size_t)(message - bytes);
}

/* False: the socket did not take all of it. */
static bool
say(struct peer *peer, const uint8_t *bytes, size_t size)
{
    return send(peer->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)size;
}

static void
call(struct crowd_client *client, struct peer *peer)
{
    size_t size = write_call(client->out, ++peer->stream, BODY);

    peer->since_ns = now_ns();
    if (!say(peer, client->out, size))
        crowd_die("a call of 64 bytes does not fit the socket");
}

/* --- One connection --- */

static void
connect_peer(struct crowd_client *client, struct peer *peer)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (peer->kind == CROWD_DEAF) /* its kernel takes little for it */
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    if (fd < 0 || connect(fd, (struct sockaddr *)&client->address,
                          sizeof client->address) != 0)
        crowd_die("connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        crowd_die("fcntl");
    peer->fd = fd;
    peer->greeted = false;
    peer->size = 0;
    peer->skip = 0;
    peer->stream = 0;
    if (peer->kind != CROWD_DEAF &&
        epoll_ctl(client->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        crowd_die("epoll_ctl");
}

static void
close_peer(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
}

/* The first thing, of each kind. */
static void
begin(struct crowd_client *client, struct peer *peer)
{
    static const uint8_t giant[FRAME_HEAD] = {
        0xFF, 0xFF, 0xFF, 0xFF, FRAME_OPEN, 3, 16, 0, 1};
    size_t size = write_hello(client->out);

    if (peer->kind == CROWD_GARBAGE) {
        for (size_t i = 0; i < 256; i++)
            client->out[i] = (uint8_t)rand();
        size = 256;
    }
    if (peer->kind == CROWD_DRIP)
        size = 0;
    (void)say(peer, client->out, size);
    if (peer->kind == CROWD_HALF)
        (void)say(peer, client->out, write_call(client->out, 1, BODY) / 2);
    if (peer->kind == CROWD_GIANT)
        (void)say(peer, giant, sizeof giant);
    peer->due_ns = now_ns();
}

/* What those do that go on by themselves. */
static void
go_on(struct crowd_client *client, struct peer *peer, int64_t now)
{
    size_t size;

    if (peer->kind == CROWD_DRIP && now >= peer->due_ns) {
        size = write_hello(client->out);
        if (peer->stream < size)
            (void)say(peer, client->out + peer->stream++, 1);
        peer->due_ns = now + INT64_C(1000000000);
    } else if (peer->kind == CROWD_DEAF && now >= peer->due_ns) {
        size = write_call(client->out, ++peer->stream, DEAF_BODY);
        peer->due_ns = now + DEAF_NS;
        if (!say(peer, client->out, size))
            peer->due_ns = INT64_MAX; /* it is stuck in its own answers */
    } else if (peer->kind == CROWD_GIANT) {
        memset(client->out, 'g', 4096);
        (void)say(peer, client->out, 4096);
    }
}

/* --- What they hear --- */

static void
answered(struct crowd_client *client, struct peer *peer)
{
    int64_t took_ns = now_ns() - peer->since_ns;

    histogram_add(&client->latencies, (uint64_t)took_ns);
    if (took_ns > client->seen.longest_ns)
        client->seen.longest_ns = took_ns;
    peer->calls++;
    call(client, peer);
}

/* The frame's head is there: what it is, and how much is to be skipped. */
static void
take_frame(struct crowd_client *client, struct peer *peer)
{
    struct frame_head head;

    if (!frame_head_read(peer->in, &head))
        crowd_die("the server sent no frame");
    peer->skip = head.size;
    peer->size -= FRAME_HEAD;
    memmove(peer->in, peer->in + FRAME_HEAD, peer->size);
    if (head.type == FRAME_SETTINGS)
        peer->greeted = true;
    else if (head.type == FRAME_END && peer->kind == CROWD_ACTIVE)
        answered(client, peer);
}

static void
drop_skipped(struct peer *peer)
{
    size_t drop = peer->skip < peer->size ? (size_t)peer->skip : peer->size;

    peer->skip -= drop;
    peer->size -= drop;
    memmove(peer->in, peer->in + drop, peer->size);
}

/* The preface comes first, and is as long as it is. */
static void
take_all(struct crowd_client *client, struct peer *peer)
{
    for (;;) {
        drop_skipped(peer);
        if (peer->skip > 0 || peer->size < FRAME_HEAD)
            return;
        take_frame(client, peer);
    }
}

/* The server has closed it: noise comes again, others stay away. */
static void
lost(struct crowd_client *client, struct peer *peer)
{
    close_peer(peer);
    if (peer->kind == CROWD_GARBAGE) {
        connect_peer(client, peer);
        begin(client, peer);
    } else if (peer->kind <= CROWD_ACTIVE) {
        client->seen.lost++;
    }
}

static void
hear(struct crowd_client *client, struct peer *peer)
{
    ssize_t n = recv(peer->fd, peer->in + peer->size, IN_MAX - peer->size, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        lost(client, peer);
        return;
    }
    if (peer->size == 0 && !peer->greeted && peer->skip == 0 &&
        n >= FRAME_PREFACE && memcmp(peer->in, "IDEM", 4) == 0)
        peer->skip = FRAME_PREFACE;
    peer->size += (size_t)n;
    if (peer->kind != CROWD_GARBAGE)
        take_all(client, peer);
}

/* For what comes within ms. */
static void
poll_once(struct crowd_client *client, int ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(client->epoll, events, EVENTS, ms);

    for (int i = 0; i < n; i++) {
        struct peer *peer = events[i].data.ptr;

        if (peer->fd >= 0)
            hear(client, peer);
    }
}

/* --- All of them --- */

struct crowd_client *
crowd_client_new(const char *address)
{
    struct crowd_client *client = calloc(1, sizeof *client);
    const char *port = strrchr(address, ':');

    if (!client || !port)
        crowd_die("no client");
    client->address.sin_family = AF_INET;
    client->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client->address.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
    client->epoll = epoll_create1(EPOLL_CLOEXEC);
    return client;
}

void
crowd_client_free(struct crowd_client *client)
{
    for (unsigned kind = 0; kind < CROWD_KINDS; kind++)
        crowd_client_drop(client, (enum crowd_kind)kind);
    close(client->epoll);
    free(client->peers);
    free(client);
}

static struct peer *
add(struct crowd_client *client, enum crowd_kind kind)
{
    struct peer *peer = calloc(1, sizeof *peer);

    if (client->n == client->room) {
        client->room = client->room ? 2 * client->room : 1024;
        client->peers =
            realloc(client->peers, client->room * sizeof(struct peer *));
    }
    if (!peer || !client->peers)
        crowd_die("no memory");
    peer->kind = kind;
    client->peers[client->n++] = peer;
    return peer;
}

static bool
all_greeted(const struct crowd_client *client, enum crowd_kind kind)
{
    for (size_t i = 0; i < client->n; i++)
        if (client->peers[i]->kind == kind && !client->peers[i]->greeted)
            return false;
    return true;
}

void
crowd_client_add(struct crowd_client *client, enum crowd_kind kind, unsigned n)
{
    int64_t until_ns = now_ns() + HELLO_S * INT64_C(1000000000);

    for (unsigned i = 0; i < n; i++) {
        struct peer *peer = add(client, kind);

        connect_peer(client, peer);
        begin(client, peer);
        if (i % 64 == 0)
            poll_once(client, 0);
    }
    while (kind <= CROWD_ACTIVE && !all_greeted(client, kind)) {
        if (now_ns() > until_ns)
            crowd_die("not all are let in");
        poll_once(client, 100);
    }
    for (size_t i = client->n - n; kind == CROWD_ACTIVE && i < client->n; i++)
        call(client, client->peers[i]);
}

void
crowd_client_drop(struct crowd_client *client, enum crowd_kind kind)
{
    size_t kept = 0;

    for (size_t i = 0; i < client->n; i++) {
        struct peer *peer = client->peers[i];

        if (peer->kind != kind) {
            client->peers[kept++] = peer;
            continue;
        }
        close_peer(peer);
        free(peer);
    }
    client->n = kept;
}

static void
begin_run(struct crowd_client *client)
{
    memset(&client->latencies, 0, sizeof client->latencies);
    client->seen = (struct crowd_seen){.fewest = UINT64_MAX};
    for (size_t i = 0; i < client->n; i++) {
        client->peers[i]->calls = 0;
        client->peers[i]->since_ns = now_ns();
    }
}

/* Those that still wait count as well: for as long as they do. */
static void
end_run(struct crowd_client *client)
{
    struct crowd_seen *seen = &client->seen;

    for (size_t i = 0; i < client->n; i++) {
        const struct peer *peer = client->peers[i];

        if (peer->kind != CROWD_ACTIVE)
            continue;
        seen->calls += peer->calls;
        if (peer->calls < seen->fewest)
            seen->fewest = peer->calls;
        if (now_ns() - peer->since_ns > seen->longest_ns)
            seen->longest_ns = now_ns() - peer->since_ns;
    }
    seen->p50_ns = histogram_quantile(&client->latencies, 0.5);
    seen->p99_ns = histogram_quantile(&client->latencies, 0.99);
}

struct crowd_seen
crowd_client_run(struct crowd_client *client, double seconds)
{
    int64_t until_ns = now_ns() + (int64_t)(seconds * 1e9), turn_ns = 0;

    begin_run(client);
    for (int64_t now = now_ns(); now < until_ns; now = now_ns()) {
        if (now >= turn_ns) {
            for (size_t i = 0; i < client->n; i++)
                if (client->peers[i]->kind > CROWD_ACTIVE &&
                    client->peers[i]->fd >= 0)
                    go_on(client, client->peers[i], now);
            turn_ns = now + 10000000;
        }
        poll_once(client, 10);
    }
    end_run(client);
    return client->seen;
}
