#include "store_redis.h"

#include <hiredis/hiredis.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* AUTH, SELECT and PING, which await their reply before anything else. */
#define LOGIN_MAX 3
#define READ_MAX 16384  /* bytes that redisBufferRead takes at a time */
#define READS_MAX 16    /* in one turn */
#define OBUF_KEPT 65536 /* bytes of commands */
#define GET_MAX 128     /* bytes of a GET, key and all */
#define PENDING_MAX (REDIS_PENDING_MAX + LOGIN_MAX)

struct redis_link {
    redisContext *context;
    bool connected;
    unsigned login; /* replies of the login that are missing */

    /* Who asked, in order: a ring. */
    void *users[PENDING_MAX];
    unsigned first, count;

    struct redis_reply reply; /* the last one; its text: */
    size_t max_reply;
    uint8_t text[];
};

/* --- What the reader makes of a reply: no allocation, ours is one at a time
 * --- */

static void *
take_text(const redisReadTask *task, char *bytes, size_t size)
{
    struct redis_link *link = task->privdata;
    enum redis_kind kind = task->type == REDIS_REPLY_STRING   ? REDIS_VALUE
                           : task->type == REDIS_REPLY_STATUS ? REDIS_STATUS
                                                              : REDIS_REFUSAL;

    if (size > link->max_reply)
        return NULL;
    memcpy(link->text, bytes, size);
    link->reply = (struct redis_reply){kind, {link->text, size}};
    return &link->reply;
}

/* No command of ours is answered with an array; the reader takes this for out
 * of memory, so that a liar cannot make it allocate. */
static void *
refuse_array(const redisReadTask *task, int elements)
{
    (void)task;
    (void)elements;
    return NULL;
}

static void *
take_integer(const redisReadTask *task, long long integer)
{
    struct redis_link *link = task->privdata;

    (void)integer;
    link->reply = (struct redis_reply){REDIS_ODD, {NULL, 0}};
    return &link->reply;
}

static void *
take_nil(const redisReadTask *task)
{
    struct redis_link *link = task->privdata;

    link->reply = (struct redis_reply){REDIS_NIL, {NULL, 0}};
    return &link->reply;
}

static void
keep_reply(void *reply)
{
    (void)reply;
}

static redisReplyObjectFunctions reader_functions = {
    .createString = take_text,
    .createArray = refuse_array,
    .createInteger = take_integer,
    .createNil = take_nil,
    .freeObject = keep_reply,
};

/* --- Commands --- */

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
say(struct redis_link *link, void *user, const char *command, const char *a,
    const char *b)
{
    const char *argv[3] = {command};
    int argc = 1;

    if (a)
        argv[argc++] = a;
    if (b)
        argv[argc++] = b;
    return append(link, user, argc, argv, NULL);
}

static bool
say_login(struct redis_link *link, const char *command, const char *a,
          const char *b)
{
    link->login++;
    return say(link, NULL, command, a, b);
}

static bool
log_in(struct redis_link *link, const struct redis_target *target)
{
    char db[16];

    if (target->password[0] && target->user[0]) {
        if (!say_login(link, "AUTH", target->user, target->password))
            return false;
    } else if (target->password[0] &&
               !say_login(link, "AUTH", target->password, NULL)) {
        return false;
    }
    snprintf(db, sizeof(db), "%u", target->db);
    if (target->db > 0 && !say_login(link, "SELECT", db, NULL))
        return false;
    return say_login(link, "PING", NULL, NULL);
}

static bool
set_up(struct redis_link *link, const struct redis_target *target)
{
    if (!link->context || link->context->err)
        return false;
    /* Not for the programs that this one starts. */
    if (fcntl(link->context->fd, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    link->context->reader->fn = &reader_functions;
    link->context->reader->privdata = link;
    return log_in(link, target);
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

/* What many fills took is not kept. */
static void
give_back(redisContext *context)
{
    char *smaller;

    if (sdslen(context->obuf) > 0 || sdsalloc(context->obuf) <= OBUF_KEPT)
        return;
    smaller = sdsRemoveFreeSpace(context->obuf);
    if (smaller)
        context->obuf = smaller;
}

/* Not by redisBufferWrite, whose write to a closed connection ends the process
 * where SIGPIPE is not blocked (case B064). */
static bool
write_out(struct redis_link *link)
{
    redisContext *context = link->context;
    size_t size = sdslen(context->obuf);
    ssize_t sent;

    if (size == 0)
        return true;
    sent = send(context->fd, context->obuf, size, MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    sdsrange(context->obuf, (int)sent, -1);
    give_back(context);
    return true;
}

/* A single reply that never ends would be kept until memory is out. */
static bool
read_some(struct redis_link *link, bool *more)
{
    const redisReader *reader = link->context->reader;
    size_t before = reader->len;

    if (redisBufferRead(link->context) != REDIS_OK)
        return false;
    *more = reader->len - before == READ_MAX;
    return reader->len - reader->pos <= link->max_reply + READ_MAX;
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
take_reply(struct redis_link *link, const struct redis_reply *reply,
           redis_replied_fn *replied, void *node)
{
    void *user;

    if (!take_user(link, &user))
        return false;
    if (link->login > 0) {
        link->login--;
        return reply->kind == REDIS_STATUS;
    }
    return replied(node, user, reply);
}

static bool
take_replies(struct redis_link *link, redis_replied_fn *replied, void *node)
{
    for (;;) {
        void *read = NULL;

        if (redisGetReplyFromReader(link->context, &read) != REDIS_OK)
            return false;
        if (!read)
            return true;
        if (!take_reply(link, read, replied, node))
            return false;
    }
}

/* A reply that is there is not late, so not a part of them alone; but others
 * wait for this thread, too. */
static bool
read_in(struct redis_link *link, redis_replied_fn *replied, void *node)
{
    bool more = true;

    for (unsigned n = 0; more && n < READS_MAX; n++)
        if (!read_some(link, &more) || !take_replies(link, replied, node))
            return false;
    return true;
}

struct redis_link *
redis_link_open(const struct redis_target *target, size_t max_reply)
{
    struct redis_link *link = calloc(1, sizeof(*link) + max_reply);

    if (!link)
        return NULL;
    link->max_reply = max_reply;
    link->context = target->host
                        ? redisConnectNonBlock(target->host, atoi(target->port))
                        : redisConnectUnixNonBlock(target->path);
    if (set_up(link, target))
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

/* By hand: the general way allocates for each word. */
bool
redis_link_get(struct redis_link *link, struct idem_bytes key, void *user)
{
    char command[GET_MAX];
    int at = snprintf(command, sizeof(command), "*2\r\n$3\r\nGET\r\n$%zu\r\n",
                      key.size);

    IDEM_ASSERT((size_t)at + key.size + 2 <= sizeof(command));
    memcpy(command + at, key.data, key.size);
    memcpy(command + at + key.size, "\r\n", 2);
    if (link->count >= REDIS_PENDING_MAX ||
        redisAppendFormattedCommand(link->context, command,
                                    (size_t)at + key.size + 2) != REDIS_OK)
        return false;
    link->users[(link->first + link->count++) % PENDING_MAX] = user;
    return true;
}

bool
redis_link_say(struct redis_link *link, const char *a, const char *b,
               void *user)
{
    return link->count < REDIS_PENDING_MAX && say(link, user, a, b, NULL);
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
                redis_replied_fn *replied, void *node)
{
    if (!link->connected && events && !finish_connect(link))
        return false;
    if (!link->connected)
        return true;
    if (events & (POLLIN | POLLERR | POLLHUP) && !read_in(link, replied, node))
        return false;
    return write_out(link);
}
