#ifndef CHAOS_IO_H
#define CHAOS_IO_H

#include "io.h"

#include <pthread.h>

/* A transport around another that does harm by a script, and only by it. Writes
 * and bytes are counted per stream; the script holds for all of its streams.
 * All fields may be set before use, and by the functions below at any time. */

#define CHAOS_NEVER UINT64_MAX

struct chaos_script {
    uint64_t drop_write;   /* the number of a write that is not written though
                            * it says so; 0 is a stream's first */
    uint64_t twice_write;  /* the number of a write that is written twice */
    uint64_t cut_sent;     /* after so many bytes sent the stream is closed */
    uint64_t cut_received; /* after so many bytes received */
    bool hold;             /* writes wait until this is false again */
    bool deaf;             /* what comes in is thrown away */
    bool refuse;           /* dials fail */
};

struct chaos_io {
    struct io io; /* first: give its address to a channel or server */
    const struct io *inner;
    pthread_mutex_t lock; /* guards the rest */
    struct chaos_script script;
    struct chaos_stream *streams; /* not freed */
    unsigned held;                /* writes that wait */
    pthread_cond_t changed;       /* held */
};

/* A script that does nothing. */
void chaos_init(struct chaos_io *chaos, const struct io *inner);

/* When no stream is left. */
void chaos_fini(struct chaos_io *chaos);

/* Change the script from here on; writes that were held go on when it says so.
 */
void chaos_set(struct chaos_io *chaos, const struct chaos_script *script);
struct chaos_script chaos_peace(void);

/* Close every stream, as a network does, and do no harm from here on. */
void chaos_cut(struct chaos_io *chaos);

/* Wait until so many writes are held. */
void chaos_await_held(struct chaos_io *chaos, unsigned held);

#endif
