#include "store_redis.h"

#include <hiredis/hiredis.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* AUTH, SELECT and PING, which await their reply before anything else. */
#define LOGIN_MAX 3
#define READ_MAX 16384 /* bytes that redisBufferRead takes at a time */
#define PENDING_MAX (REDIS_PENDING_MAX + LOGIN_MAX)

struct redis_link {
    redisContext *context;
    redisReplyObjectFunctions functions; /* the reader's, without arrays */
    size_t max_reply;
    bool connected;
    unsigned login; /* replies of the login that are missing */

    /* Who asked, in order: a ring. */
    void *users[PENDING_MAX];
    unsigned first, count;
};

/* No command of ours is answered with an array; the reader takes this for out
 * of memory, so that a liar cannot make it allocate. */
static void *
refuse_array(const redisReadTask *task, int elements)
{
    (void)task;
    (void)elements;
    return NULL;
}

static bool
append(struct redis_link *link, void *user, int argc, const char **argv,
       const size_t *sizes)
{
    if (redisAppendCommandArgv(link->context, argc, argv, sizes) != REDIS_OK)
        return false;
    link->users[(link->first + link->count++) % PENDING_MAX] = user;
    return true;
}

/* Words of a command; NULL words are left out. */
static bool
say(struct redis_link *link, const char *command, const char *a, const char *b)
{
    const char *argv[3] = {command};
    int argc = 1;

    if (a)
        argv[argc++] = a;
    if (b)
        argv[argc++] = b;
    link->login++;
    return append(link, NULL, argc, argv, NULL);
}

static bool
log_in(struct redis_link *link, const struct shield_url *url)
{
    char db[16];

    if (url->password[0] && url->user[0]) {
        if (!say(link, "AUTH", url->user, url->password))
            return false;
    } else if (url->password[0] && !say(link, "AUTH", url->password, NULL)) {
        return false;
    }
    snprintf(db, sizeof(db), "%u", url->db);
    if (url->db > 0 && !say(link, "SELECT", db, NULL))
        return false;
    return say(link, "PING", NULL, NULL);
}

static bool
set_up(struct redis_link *link, const struct shield_url *url)
{
    if (!link->context || link->context->err)
        return false;
    /* Not for the programs that this one starts. */
    if (fcntl(link->context->fd, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    link->functions = *link->context->reader->fn;
    link->functions.createArray = refuse_array;
    link->context->reader->fn = &link->functions;
    return log_in(link, url);
}

static bool
finish_connect(struct redis_link *link)
{
    int error = 0;
    socklen_t size = sizeof(error);

    link->connected = getsockopt(link->context->fd, SOL_SOCKET, SO_ERROR,
                                 &error, &size) == 0 &&
                      error == 0;
    return link->connected;
}

static bool
write_out(struct redis_link *link)
{
    int done;

    return redisBufferWrite(link->context, &done) == REDIS_OK;
}

/* A single reply that never ends would be kept until memory is out. */
static bool
read_in(struct redis_link *link)
{
    const redisReader *reader = link->context->reader;

    return redisBufferRead(link->context) == REDIS_OK &&
           reader->len - reader->pos <= link->max_reply;
}

static enum redis_kind
kind_of(const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_STRING:
        return REDIS_VALUE;
    case REDIS_REPLY_NIL:
        return REDIS_NIL;
    case REDIS_REPLY_STATUS:
        return REDIS_STATUS;
    case REDIS_REPLY_ERROR:
        return REDIS_REFUSAL;
    default:
        return REDIS_ODD;
    }
}

/* Its user, or false when nobody asked. */
static bool
take_user(struct redis_link *link, void **user)
{
    if (link->count == 0)
        return false;
    *user = link->users[link->first];
    link->first = (link->first + 1) % PENDING_MAX;
    link->count--;
    return true;
}

static bool
take_reply(struct redis_link *link, const redisReply *read,
           redis_replied_fn *replied, void *shield)
{
    const struct redis_reply reply = {kind_of(read),
                                      {(const uint8_t *)read->str, read->len}};
    void *user;

    if (!take_user(link, &user))
        return false;
    if (link->login > 0) {
        link->login--;
        return reply.kind == REDIS_STATUS;
    }
    return replied(shield, user, &reply);
}

static bool
take_replies(struct redis_link *link, redis_replied_fn *replied, void *shield)
{
    for (;;) {
        void *read = NULL;
        bool good;

        if (redisGetReplyFromReader(link->context, &read) != REDIS_OK)
            return false;
        if (!read)
            return true;
        good = take_reply(link, read, replied, shield);
        freeReplyObject(read);
        if (!good)
            return false;
    }
}

struct redis_link *
redis_link_open(const struct shield_url *url, const char *host,
                size_t max_reply)
{
    struct redis_link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->max_reply = max_reply + READ_MAX;
    link->context = host ? redisConnectNonBlock(host, atoi(url->port))
                         : redisConnectUnixNonBlock(url->path);
    if (set_up(link, url))
        return link;
    redis_link_close(link);
    return NULL;
}

void
redis_link_close(struct redis_link *link)
{
    if (!link)
        return;
    if (link->context)
        redisFree(link->context);
    free(link);
}

int
redis_link_fd(const struct redis_link *link)
{
    return link->context->fd;
}

short
redis_link_events(const struct redis_link *link)
{
    bool writes = !link->connected || sdslen(link->context->obuf) > 0;

    return (short)(writes ? POLLIN | POLLOUT : POLLIN);
}

bool
redis_link_ready(const struct redis_link *link)
{
    return link->login == 0;
}

unsigned
redis_link_pending(const struct redis_link *link)
{
    return link->count;
}

bool
redis_link_get(struct redis_link *link, struct idem_bytes key, void *user)
{
    const char *argv[] = {"GET", (const char *)key.data};
    const size_t sizes[] = {3, key.size};

    return link->count < REDIS_PENDING_MAX &&
           append(link, user, 2, argv, sizes);
}

bool
redis_link_set(struct redis_link *link, struct idem_bytes key,
               struct idem_bytes value, int64_t ttl_ms, void *user)
{
    char ttl[24];
    const char *argv[] = {"SET", (const char *)key.data,
                          (const char *)value.data, "PX", ttl};
    size_t sizes[] = {3, key.size, value.size, 2, 0};

    sizes[4] = (size_t)snprintf(ttl, sizeof(ttl), "%lld", (long long)ttl_ms);
    return link->count < REDIS_PENDING_MAX &&
           append(link, user, 5, argv, sizes);
}

bool
redis_link_turn(struct redis_link *link, short events,
                redis_replied_fn *replied, void *shield)
{
    if (!link->connected && events && !finish_connect(link))
        return false;
    if (!link->connected)
        return true;
    if (events & (POLLIN | POLLERR | POLLHUP) &&
        !(read_in(link) && take_replies(link, replied, shield)))
        return false;
    return write_out(link);
}
