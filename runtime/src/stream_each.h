#ifndef STREAM_EACH_H
#define STREAM_EACH_H

#include "header.h"

#include <idem/session.h>

struct idem_stream;

/* The numbers of a stream whose messages take effect once each (decision 39).
 * The messages of a session are numbered from 1, and the key of an OPEN says
 * which number the first one behind it has: so none is said with a message.
 *
 *                first             watermark         sent
 *   of the OPEN  |                 |                 |
 *   ... 4 5 6    7 8 9 10 11 12 13 14 15 16 17 18 19 20 ...
 *                                     what the client keeps
 *
 * In the call's arena, under the stream's lock; a server's session, watermark
 * and told are written by who runs due, who reads them without it. */
struct stream_each {
    char session[IDEM_SESSION_MAX]; /* "": not known yet */
    int64_t first;                  /* of the messages of this OPEN */
    int64_t watermark;              /* all up to it took effect */
    int64_t sent;   /* client: the highest that this OPEN has sent */
    uint64_t acked; /* client: the ack_below that it has said last; server:
                     * that it was told last; 0: none */
    bool acks;      /* client: it says it: nobody else has the session */
    int64_t told;   /* server: the watermark that it has said last */
};

/* Messages between two words of the watermark; one is also said whenever
 * nothing more is there. */
#define STREAM_TELL_EVERY 32

/* --- The client's: with the lock --- */

/* Before each OPEN: its key, in text's IDEM_KEY_MAX + 1 bytes, and what it
 * acknowledges. */
void stream_each_open(struct idem_stream *stream, struct header_open *open,
                      char *text);

/* What the next MESSAGE acknowledges; 0: nothing new. */
uint64_t stream_each_ack(struct idem_stream *stream);

/* The server says so: what is kept for another attempt goes. It never goes
 * back. INTERNAL: it is above what was sent. */
enum idem_status stream_each_move(struct idem_stream *stream,
                                  uint64_t watermark, struct idem_error *err)
    IDEM_MUST_CHECK;

/* An END says so. Of a bidirectional stream the answers do: one that did not
 * come is asked for again, whatever END says. INTERNAL: as above; or it says
 * OK, and not all that was written took effect, or there may be more to come.
 */
enum idem_status stream_each_end(struct idem_stream *stream, uint64_t watermark,
                                 bool ok, struct idem_error *err)
    IDEM_MUST_CHECK;

/* Without the lock: into the call's outcome, when the call is over. */
void stream_each_conclude(struct idem_stream *stream);

/* --- The server's --- */

/* From the key of the OPEN, which was looked at. */
void stream_each_begin(struct idem_stream *stream);

/* With the lock: a MESSAGE that came says so. INTERNAL: it is above its own
 * number. */
enum idem_status stream_each_take_ack(struct idem_stream *stream,
                                      uint64_t ack_below,
                                      struct idem_error *err) IDEM_MUST_CHECK;

/* With the lock: what the client is to be told in a WINDOW; 0: it gets replies,
 * which say the same. */
uint64_t stream_each_tell(struct idem_stream *stream);

#endif
