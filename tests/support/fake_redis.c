#include "support.h"

#include "fake_redis.h"
#include "loopback.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define VALUES_MAX 256
#define WORDS_MAX 8
#define BUFFER_MAX 65536

struct text {
    char *at;
    size_t size;
};

struct fake_redis {
    pthread_t thread;
    int listener, stop[2];
    char url[64];

    pthread_mutex_t lock; /* guards the next five */
    enum fake_redis_lie lie;
    unsigned every, gets, lies, connections;

    /* The thread's. */
    struct text keys[VALUES_MAX], values[VALUES_MAX];
    unsigned count;
    struct text before; /* the value that the last GET was for; not owned */
    int fd;
    char buffer[BUFFER_MAX];
    size_t filled;
};

static bool
same(struct text a, struct text b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

static bool
is_word(struct text text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.at, word, text.size) == 0;
}

static struct text
copy_text(struct text text)
{
    struct text copy = {malloc(text.size + 1), text.size};

    assert_non_null(copy.at);
    memcpy(copy.at, text.at, text.size);
    return copy;
}

/* --- Out --- */

static void
put(struct fake_redis *fake, const void *bytes, size_t size)
{
    send(fake->fd, bytes, size, MSG_NOSIGNAL);
}

static void
put_text(struct fake_redis *fake, const char *text)
{
    put(fake, text, strlen(text));
}

static void
put_value(struct fake_redis *fake, struct text value)
{
    char head[32];

    snprintf(head, sizeof(head), "$%zu\r\n", value.size);
    put_text(fake, head);
    put(fake, value.at, value.size);
    put_text(fake, "\r\n");
}

static void
put_flipped(struct fake_redis *fake, struct text value)
{
    struct text copy = copy_text(value);

    copy.at[fake->lies * 31 % copy.size] ^= (char)(1 << fake->lies % 8);
    put_value(fake, copy);
    free(copy.at);
}

static struct text
another_value(const struct fake_redis *fake, struct text value)
{
    for (unsigned i = 0; i < fake->count; i++) {
        struct text other = fake->values[(fake->lies + i) % fake->count];

        if (!same(other, value))
            return other;
    }
    return value;
}

#define READONLY "-ERR READONLY You can't write here\r\n"

/* Lies that are one line whatever the value is. */
static const char *const lines[FAKE_REDIS_LIES] = {
    [FAKE_REDIS_NIL] = "$-1\r\n",
    [FAKE_REDIS_STATUS] = "+OK\r\n",
    [FAKE_REDIS_INTEGER] = ":1\r\n",
    [FAKE_REDIS_ARRAY] = "*2000000000\r\n$-1\r\n",
    [FAKE_REDIS_NOISE] = "HTTP/1.1 400 Bad Request\r\n\r\n",
    [FAKE_REDIS_READONLY] = READONLY,
    [FAKE_REDIS_LOADING] =
        "-LOADING Redis is loading the dataset in memory\r\n",
};

/* False: hang up. */
static bool
put_lie(struct fake_redis *fake, enum fake_redis_lie lie, struct text value)
{
    switch ((int)lie) {
    case FAKE_REDIS_HONEST:
        put_value(fake, value);
        break;
    case FAKE_REDIS_SWAP:
        put_value(fake, another_value(fake, value));
        break;
    case FAKE_REDIS_FLIP:
        put_flipped(fake, value);
        break;
    case FAKE_REDIS_TRUNCATE:
        value.size = fake->lies * 7 % value.size;
        put_value(fake, value);
        break;
    case FAKE_REDIS_SHIFT:
        if (fake->before.at)
            put_value(fake, fake->before);
        else
            put_text(fake, "$-1\r\n");
        break;
    case FAKE_REDIS_TWICE:
        put_value(fake, value);
        put_text(fake, "+OK\r\n");
        break;
    case FAKE_REDIS_ENDLESS:
        put_text(fake, "$2000000000\r\n");
        put(fake, fake->buffer, sizeof(fake->buffer));
        break;
    case FAKE_REDIS_HANG_UP:
        put_text(fake, "$100\r\nhalf");
        return false;
    case FAKE_REDIS_SILENT:
        break;
    default:
        put_text(fake, lines[lie]);
    }
    return true;
}

/* --- Commands --- */

/* What this GET is told. */
static enum fake_redis_lie
choose_lie(struct fake_redis *fake)
{
    enum fake_redis_lie lie = FAKE_REDIS_HONEST;

    pthread_mutex_lock(&fake->lock);
    if (fake->lie != FAKE_REDIS_HONEST && ++fake->gets % fake->every == 0) {
        lie = fake->lie == FAKE_REDIS_ANY
                  ? FAKE_REDIS_SWAP + fake->lies % (FAKE_REDIS_SILENT - 1)
                  : fake->lie;
        fake->lies++;
    }
    pthread_mutex_unlock(&fake->lock);
    return lie;
}

static bool
get(struct fake_redis *fake, struct text key)
{
    for (unsigned i = 0; i < fake->count; i++) {
        bool goes_on;

        if (!same(fake->keys[i], key))
            continue;
        goes_on = put_lie(fake, choose_lie(fake), fake->values[i]);
        fake->before = fake->values[i];
        return goes_on;
    }
    put_text(fake, "$-1\r\n");
    return true;
}

static void
set(struct fake_redis *fake, struct text key, struct text value)
{
    unsigned i = 0;

    while (i < fake->count && !same(fake->keys[i], key))
        i++;
    assert_true(i < VALUES_MAX);
    if (i < fake->count) {
        free(fake->values[i].at);
        fake->before = (struct text){NULL, 0};
    } else {
        fake->keys[i] = copy_text(key);
        fake->count++;
    }
    fake->values[i] = copy_text(value);
}

static bool
refuses_writes(struct fake_redis *fake)
{
    bool refuses;

    pthread_mutex_lock(&fake->lock);
    refuses = fake->lie == FAKE_REDIS_READONLY;
    pthread_mutex_unlock(&fake->lock);
    return refuses;
}

static bool
answer(struct fake_redis *fake, const struct text *words, unsigned count)
{
    bool is_set = count >= 5 && is_word(words[0], "SET");

    if (count == 2 && is_word(words[0], "GET"))
        return get(fake, words[1]);
    if (is_set && refuses_writes(fake)) {
        put_text(fake, READONLY);
        return true;
    }
    if (is_set)
        set(fake, words[1], words[2]);
    put_text(fake, "+OK\r\n");
    return true;
}

/* --- In --- */

/* "*2\r\n" or "$3\r\n" at *at. False: not all of it is there. */
static bool
take_number(const struct fake_redis *fake, size_t *at, size_t *number)
{
    const char *from = fake->buffer + *at;
    const char *end = memchr(from, '\n', fake->filled - *at);

    if (!end)
        return false;
    *number = strtoul(from + 1, NULL, 10);
    *at = (size_t)(end + 1 - fake->buffer);
    return true;
}

/* The first whole command's words. Returns its size, 0 when it is not there. */
static size_t
take_command(struct fake_redis *fake, struct text *words, unsigned *count)
{
    size_t at = 0, n;

    if (!take_number(fake, &at, &n))
        return 0;
    assert_true(n <= WORDS_MAX);
    for (*count = 0; *count < n; ++*count) {
        struct text *word = &words[*count];

        if (!take_number(fake, &at, &word->size) ||
            at + word->size + 2 > fake->filled)
            return 0;
        word->at = fake->buffer + at;
        at += word->size + 2;
    }
    return at;
}

static bool
answer_all(struct fake_redis *fake)
{
    struct text words[WORDS_MAX];
    unsigned count;
    size_t size;

    while (fake->filled > 0 && (size = take_command(fake, words, &count)) > 0) {
        if (!answer(fake, words, count))
            return false;
        fake->filled -= size;
        memmove(fake->buffer, fake->buffer + size, fake->filled);
    }
    return true;
}

/* False when the fake is to stop. */
static bool
await(struct fake_redis *fake, int fd)
{
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN},
                            {.fd = fake->stop[0], .events = POLLIN}};

    return poll(fds, 2, -1) > 0 && !fds[1].revents;
}

static void
serve(struct fake_redis *fake)
{
    fake->filled = 0;
    while (await(fake, fake->fd)) {
        ssize_t n = recv(fake->fd, fake->buffer + fake->filled,
                         sizeof(fake->buffer) - fake->filled, 0);

        if (n <= 0)
            break;
        fake->filled += (size_t)n;
        if (!answer_all(fake))
            break;
    }
    close(fake->fd);
}

static void *
run(void *argument)
{
    struct fake_redis *fake = argument;
    int on = 1;

    while (await(fake, fake->listener)) {
        fake->fd = accept(fake->listener, NULL, NULL);
        if (fake->fd < 0)
            continue;
        setsockopt(fake->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        pthread_mutex_lock(&fake->lock);
        fake->connections++;
        pthread_mutex_unlock(&fake->lock);
        serve(fake);
    }
    return NULL;
}

struct fake_redis *
fake_redis_start(void)
{
    struct fake_redis *fake = calloc(1, sizeof(*fake));
    unsigned port;

    assert_non_null(fake);
    fake->every = 1;
    fake->listener = loopback_listen(&port);
    snprintf(fake->url, sizeof(fake->url), "redis://127.0.0.1:%u", port);
    assert_int_equal(pipe(fake->stop), 0);
    pthread_mutex_init(&fake->lock, NULL);
    assert_int_equal(pthread_create(&fake->thread, NULL, run, fake), 0);
    return fake;
}

void
fake_redis_free(struct fake_redis *fake)
{
    if (!fake)
        return;
    close(fake->stop[1]);
    pthread_join(fake->thread, NULL);
    close(fake->stop[0]);
    close(fake->listener);
    for (unsigned i = 0; i < fake->count; i++) {
        free(fake->keys[i].at);
        free(fake->values[i].at);
    }
    pthread_mutex_destroy(&fake->lock);
    free(fake);
}

const char *
fake_redis_url(const struct fake_redis *fake)
{
    return fake->url;
}

void
fake_redis_lie(struct fake_redis *fake, enum fake_redis_lie lie, unsigned every)
{
    pthread_mutex_lock(&fake->lock);
    fake->lie = lie;
    fake->every = every;
    fake->gets = 0;
    pthread_mutex_unlock(&fake->lock);
}

static unsigned
read_count(struct fake_redis *fake, const unsigned *count)
{
    unsigned read;

    pthread_mutex_lock(&fake->lock);
    read = *count;
    pthread_mutex_unlock(&fake->lock);
    return read;
}

unsigned
fake_redis_lies(struct fake_redis *fake)
{
    return read_count(fake, &fake->lies);
}

unsigned
fake_redis_connections(struct fake_redis *fake)
{
    return read_count(fake, &fake->connections);
}
