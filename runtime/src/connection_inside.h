#ifndef CONNECTION_INSIDE_H
#define CONNECTION_INSIDE_H

#include "connection.h"
#include "head_start.h"
#include "inbox.h"

#include <pthread.h>
#include <stdatomic.h>

/* What connection.c (its life), connection_read.c and connection_send.c share.
 */

#define CONNECTION_CROWDED                                                     \
    262144 /* bytes unwritten over which streams wait                          \
            */
#define CONNECTION_OUT_MAX                                                     \
    1048576 /* bytes unwritten over which a server stops                       \
             * reading */
#define CONNECTION_WHY_MAX 128

/* What the peer's bytes are read as.
 *
 *    PREFACE --8 bytes--> SETTINGS --frame--> OPEN
 *        +--8 bytes of a plain client's-------->
 */
enum stage {
    STAGE_PREFACE,
    STAGE_SETTINGS,
    STAGE_OPEN,
};

struct connection {
    struct io_stream *stream;
    struct connection_options options;
    atomic_uint refs; /* the user's, the reader's, one for a send in flight */

    atomic_uint_least64_t heard;  /* receives that brought something */
    struct inbox inbox;           /* the reader's */
    enum stage stage;             /* the reader's */
    struct head_start head_start; /* the reader's */
    _Atomic int64_t begun_ns;     /* when the frame that is not whole began; 0:
                                   * none is, or it is not read on */
    atomic_size_t begun_size;     /* of that frame */
    struct connection_limits peer;
    bool plain, local;    /* since the preface: a plain client, over ipc */
    uint32_t plain_calls; /* the reader's: a plain client does not count them */

    pthread_mutex_t lock; /* guards the rest */
    struct outbox outbox; /* its flying half is the sender's while it sends */
    bool sending;
    int64_t flying_ns; /* when the flight took off; of a server's only */
    bool dropping;     /* the flight is let go of, not written; the sender's */
    atomic_bool crowded; /* over CONNECTION_CROWDED wait to be written; written
                          * with the lock */
    bool corked;         /* the reader flushes at the end of its chunk */
    bool paused;         /* the reader waits for the sender; implies sending */
    bool finishing;      /* close when all is written */
    bool closed;
    char why[CONNECTION_WHY_MAX];
};

/* Read on, until a receive is under way; the reader's reference ends here when
 * the connection is closed. Without the lock. */
void connection_read_on(struct connection *connection);

/* Why an operation of the stream failed, if the transport knows; else that. */
const char *connection_why_lost(const struct connection *connection,
                                const char *otherwise);

/* With the lock. */
static inline size_t
connection_unwritten(const struct connection *connection)
{
    /* What has landed is still in the flying half. */
    return connection->outbox.filling.total +
           (connection->sending ? connection->outbox.flying.total : 0);
}

#endif
