#include "fuzz.h"

#include "shield_entry.h"
#include "store_redis.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* What a Redis answers, over a socket and through hiredis's reader: replies
 * come to those who asked, in their order and within the limit, or the link is
 * broken. */

#define MAX_REPLY 8192
#define INPUT_MAX 65536 /* a socket takes it at once */
#define ASKED 5

struct place {
    char folder[32], path[64];
    int listener;
};

static struct place place;

static void
leave_place(void)
{
    close(place.listener);
    unlink(place.path);
    rmdir(place.folder);
}

static void
open_place(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    snprintf(place.folder, sizeof place.folder, "/tmp/idem-fuzz-XXXXXX");
    IDEM_ASSERT(mkdtemp(place.folder));
    snprintf(place.path, sizeof place.path, "%s/redis", place.folder);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", place.path);
    place.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    IDEM_ASSERT(place.listener >= 0);
    IDEM_ASSERT(bind(place.listener, (struct sockaddr *)&name, sizeof name) ==
                0);
    IDEM_ASSERT(listen(place.listener, 1) == 0);
    atexit(leave_place);
}

/* Whose turn it is to be answered. */
struct asked {
    char users[ASKED];
    unsigned next;
};

static const uint8_t secret[] = "0123456789abcdef";
static const struct shield_secrets secrets = {
    .list = {{.id = 1, .bytes = {secret, 16}}}, .count = 1};

static bool
replied(void *node, void *user, const struct redis_reply *reply)
{
    struct asked *asked = node;
    struct shield_entry entry;

    IDEM_ASSERT(asked->next < ASKED);
    IDEM_ASSERT(user == &asked->users[asked->next]);
    IDEM_ASSERT(reply->bytes.size <= MAX_REPLY);
    asked->next++;
    if (reply->kind == REDIS_VALUE &&
        shield_entry_read(&entry, &secrets, reply->bytes) == SHIELD_READ_GOOD)
        IDEM_ASSERT(entry.answer.reply.size < reply->bytes.size);
    return reply->kind != REDIS_ODD;
}

static void
ask(struct redis_link *link, struct asked *asked)
{
    const struct idem_bytes key = idem_bytes_of("idem:{k}");

    IDEM_ASSERT(redis_link_get(link, key, &asked->users[0]));
    IDEM_ASSERT(redis_link_set(link, key, idem_bytes_of("value"), 1000,
                               &asked->users[1]));
    IDEM_ASSERT(redis_link_say(link, "ASKING", NULL, &asked->users[2]));
    IDEM_ASSERT(redis_link_get(link, key, &asked->users[3]));
    IDEM_ASSERT(redis_link_say(link, "CLUSTER", "NODES", &asked->users[4]));
}

static bool
deliver(struct redis_link *link, int fd, struct idem_bytes bytes,
        struct asked *asked)
{
    IDEM_ASSERT(write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size);
    return redis_link_turn(link, POLLIN, replied, asked);
}

static void
talk(struct redis_link *link, int fd, struct idem_bytes input, size_t piece)
{
    struct asked asked = {.next = 0};
    bool fine = redis_link_turn(link, POLLOUT, replied, &asked) &&
                deliver(link, fd, idem_bytes_of("+PONG\r\n"), &asked);

    IDEM_ASSERT(fine && redis_link_ready(link));
    ask(link, &asked);
    while (fine && input.size > 0) {
        size_t size = input.size < piece ? input.size : piece;

        fine = deliver(link, fd, (struct idem_bytes){input.data, size}, &asked);
        input.data += size;
        input.size -= size;
    }
    IDEM_ASSERT(!fine || redis_link_pending(link) == ASKED - asked.next);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct redis_target target = {.user = "", .password = ""};
    struct idem_bytes input = {data, size};
    size_t piece = 1 + 16 * (size_t)fuzz_take_byte(&input);
    struct redis_link *link;
    int fd;

    if (!place.path[0])
        open_place();
    if (size > INPUT_MAX)
        return 0;
    target.path = place.path;
    link = redis_link_open(&target, MAX_REPLY);
    IDEM_ASSERT(link);
    fd = accept4(place.listener, NULL, NULL, SOCK_CLOEXEC);
    IDEM_ASSERT(fd >= 0);
    talk(link, fd, input, piece);
    redis_link_close(link);
    close(fd);
    return 0;
}
