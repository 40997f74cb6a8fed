#include "support.h"

#include "child.h"
#include "loopback.h"
#include "redis.h"
#include "tempdir.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MS 20000
#define TRIES 3 /* a Sentinel that changes a server's role ends its links */

struct redis {
    struct tempdir dir;
    pid_t pid;
    const char *mode; /* "--sentinel"; NULL: a server */
    unsigned port;
    char conf[TEMPDIR_MAX + 32];
    char log[TEMPDIR_MAX + 32];
    char url[64];
    char unix_url[TEMPDIR_MAX + 32];
};

static void
write_conf(const struct redis *redis, const char *options)
{
    FILE *file = fopen(redis->conf, "w");

    assert_non_null(file);
    fprintf(file,
            "bind 127.0.0.1\nport %u\nunixsocket %s/redis.sock\n"
            "dir %s\nsave \"\"\nappendonly no\ndaemonize no\n%s",
            redis->port, redis->dir.path, redis->dir.path,
            options ? options : "");
    fclose(file);
}

/* The whole reply to a short command; "" when there is none. */
static void
talk(unsigned port, const char *command, char *reply, size_t size)
{
    struct timeval limit = {.tv_sec = 5};
    int fd = loopback_connect(port);
    ssize_t n = 0;

    reply[0] = '\0';
    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (send(fd, command, strlen(command), MSG_NOSIGNAL) > 0 &&
        send(fd, "\r\n", 2, MSG_NOSIGNAL) == 2)
        n = recv(fd, reply, size - 1, 0);
    reply[n > 0 ? n : 0] = '\0';
    close(fd);
}

static bool
answers(void *with)
{
    const struct redis *redis = with;
    char reply[64];

    talk(redis->port, "PING", reply, sizeof(reply));
    return strcmp(reply, "+PONG\r\n") == 0 || strncmp(reply, "-NOAUTH", 7) == 0;
}

static void
launch(struct redis *redis)
{
    const struct child_options options = {.log = redis->log,
                                          .folder = redis->dir.path};
    const char *const arguments[] = {"redis-server", redis->conf, redis->mode,
                                     NULL};

    redis->pid = child_start(&options, arguments);
    if (child_wait_until(answers, redis, READY_MS))
        return;
    child_show(redis->log);
    fail_msg("redis-server does not answer");
}

static struct redis *
make(void)
{
    struct redis *redis = calloc(1, sizeof(*redis));

    assert_non_null(redis);
    tempdir_open(&redis->dir);
    tempdir_file(&redis->dir, "redis.conf", redis->conf, sizeof(redis->conf));
    tempdir_file(&redis->dir, "redis.log", redis->log, sizeof(redis->log));
    redis->port = loopback_free_port();
    snprintf(redis->url, sizeof(redis->url), "redis://127.0.0.1:%u",
             redis->port);
    snprintf(redis->unix_url, sizeof(redis->unix_url), "unix://%s/redis.sock",
             redis->dir.path);
    return redis;
}

struct redis *
redis_start(const char *options)
{
    struct redis *redis = make();

    write_conf(redis, options);
    launch(redis);
    return redis;
}

struct redis *
redis_start_sentinel(const char *name, unsigned master_port)
{
    struct redis *redis = make();
    FILE *file = fopen(redis->conf, "w");

    assert_non_null(file);
    fprintf(file,
            "bind 127.0.0.1\nport %u\ndir %s\n"
            "sentinel monitor %s 127.0.0.1 %u 1\n"
            "sentinel down-after-milliseconds %s 500\n"
            "sentinel failover-timeout %s 2000\n",
            redis->port, redis->dir.path, name, master_port, name, name);
    fclose(file);
    redis->mode = "--sentinel";
    launch(redis);
    return redis;
}

void
redis_free(struct redis *redis)
{
    if (!redis)
        return;
    redis_kill(redis);
    tempdir_close(&redis->dir);
    free(redis);
}

unsigned
redis_port(const struct redis *redis)
{
    return redis->port;
}

const char *
redis_url(const struct redis *redis)
{
    return redis->url;
}

const char *
redis_unix_url(const struct redis *redis)
{
    return redis->unix_url;
}

void
redis_kill(struct redis *redis)
{
    child_stop(redis->pid, SIGKILL);
    redis->pid = 0;
}

void
redis_restart(struct redis *redis)
{
    redis_kill(redis);
    launch(redis);
}

void
redis_freeze(struct redis *redis)
{
    assert_int_equal(kill(redis->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(redis->pid, NULL, WUNTRACED), redis->pid);
}

void
redis_thaw(struct redis *redis)
{
    assert_int_equal(kill(redis->pid, SIGCONT), 0);
}

void
redis_say(struct redis *redis, const char *command, char *reply, size_t size)
{
    unsigned tries = 0;

    do
        talk(redis->port, command, reply, size);
    while (reply[0] == '\0' && ++tries < TRIES);
    if (reply[0] == '\0')
        fail_msg("redis does not answer %s", command);
}
