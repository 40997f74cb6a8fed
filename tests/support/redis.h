#ifndef REDIS_H
#define REDIS_H

#include <stddef.h>

/* A private redis-server on a loopback port and a unix socket, in a temporary
 * folder; it ends with the test. Every function fails the test when it cannot
 * do its work. */
struct redis;

/* options: further lines of redis.conf, "maxmemory 1mb\n"; NULL: none */
struct redis *redis_start(const char *options);

/* A Sentinel of a master of that name on a port of the loopback; alone, it
 * agrees with itself. Half a second of silence is a master's end. */
struct redis *redis_start_sentinel(const char *name, unsigned master_port);

void redis_free(struct redis *redis); /* stops it; NULL is fine */

unsigned redis_port(const struct redis *redis);
const char *redis_url(const struct redis *redis);      /* redis://… */
const char *redis_unix_url(const struct redis *redis); /* unix://… */

void redis_kill(struct redis *redis);    /* SIGKILL; gone when it returns */
void redis_restart(struct redis *redis); /* on the same port; accepts again */
void redis_freeze(struct redis *redis);  /* SIGSTOP: accepts, never answers */
void redis_thaw(struct redis *redis);

/* Say one inline command ("FLUSHALL") and read what fits of the reply's first
 * 64 KiB as Redis writes it ("+OK\r\n"), NUL-terminated. Said again when no
 * reply came: it must not matter how often it takes effect. */
void redis_say(struct redis *redis, const char *command, char *reply,
               size_t size);

#endif
