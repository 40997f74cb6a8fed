#ifndef FAKE_REDIS_H
#define FAKE_REDIS_H

/* A server that speaks Redis and lies. It knows AUTH, SELECT, PING, GET and
 * SET, serves one connection after another on a thread of its own, and tells
 * the truth to all but GET. Functions are for any thread. */
struct fake_redis;

enum fake_redis_lie {
    FAKE_REDIS_HONEST,
    FAKE_REDIS_SWAP,     /* another key's value */
    FAKE_REDIS_FLIP,     /* one bit of the value */
    FAKE_REDIS_TRUNCATE, /* a part of the value, well framed */
    FAKE_REDIS_SHIFT,    /* what the GET before should have got */
    FAKE_REDIS_NIL,      /* nothing there */
    FAKE_REDIS_STATUS,   /* +OK */
    FAKE_REDIS_INTEGER,  /* :1 */
    FAKE_REDIS_ARRAY,    /* of 2,000,000,000 elements */
    FAKE_REDIS_TWICE,    /* the value, and a reply that nobody asked for */
    FAKE_REDIS_NOISE,    /* no RESP at all */
    FAKE_REDIS_ENDLESS,  /* a value of 2 GB that never ends */
    FAKE_REDIS_READONLY, /* -ERR READONLY, to SET too */
    FAKE_REDIS_LOADING,  /* -LOADING, as after a restart with much to read */
    FAKE_REDIS_HANG_UP,  /* a part of the reply, then the end */
    FAKE_REDIS_SILENT,   /* nothing */
    FAKE_REDIS_ANY,      /* one of the others after the other, but SILENT */
    FAKE_REDIS_LIES
};

struct fake_redis *fake_redis_start(void);
void fake_redis_free(struct fake_redis *fake); /* NULL is fine */

const char *fake_redis_url(const struct fake_redis *fake);

/* Lie so to each GET of a known key whose number, from 1, every divides. */
void fake_redis_lie(struct fake_redis *fake, enum fake_redis_lie lie,
                    unsigned every);

/* Lies told, and connections taken, so far. */
unsigned fake_redis_lies(struct fake_redis *fake);
unsigned fake_redis_connections(struct fake_redis *fake);

#endif
