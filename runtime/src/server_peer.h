#ifndef SERVER_PEER_H
#define SERVER_PEER_H

#include "connection.h"
#include "header.h"
#include "method_table.h"
#include "streams.h"
#include "timer.h"

/* One client's connection at the server. Part of server_inside.h, which says in
 * what order locks are taken. */

struct idem_server;
struct server_call;

/* What a peer is held to beside its calls (server_watch.c). */
struct peer_watch {
    struct idem_timer timer; /* holds a reference of the connection */
    int64_t idle_ns;         /* the watch's: no call since */
    uint32_t seen_stream;    /* … as its last stream was this one */
    int64_t suspect_ns;      /* the watch's: a stall of then was seen */
    int64_t retires_ns;      /* the peer's lock: told to go then */
    int64_t ends_ns;         /* … and cut then; INT64_MAX: not yet known */
    bool over;               /* the peer's lock: it is closed */
    unsigned pings;          /* the reader's: since … */
    int64_t pings_ns;
};

/* One client's connection. Freed when that is gone. */
struct peer {
    struct idem_server *server;
    struct connection *connection;
    struct peer *next, **link; /* the server's lock; NULL: not taken in */
    struct idem_timer hello;   /* holds a reference of the connection */
    bool ready;                /* SETTINGS were exchanged; the server's lock */
    bool open;                 /* not closed yet; the server's lock */
    struct idem_peer known;    /* when ready; then const */
    struct idem_principal principal; /* what its certificate says */

    /* The reader's: method ids that this client told, and the newest stream
     * that it opened. */
    const struct method_entry **told;
    uint32_t n_told, newest;

    pthread_mutex_t lock; /* guards the rest */
    struct streams streams;
    struct server_call *calls; /* not finished, also detached ones */
    uint32_t last_stream; /* the newest that was not too late for a GOAWAY */
    uint32_t roomy_turn;  /* which stream writes first when there is room */
    unsigned n_streaming; /* of the streams, calls of many messages */
    bool draining;
    struct peer_watch watch;
};

/* --- server_peer.c --- */

/* Owns the stream. */
void peer_new(struct idem_server *server, struct io_stream *stream);

/* Tell it to go elsewhere, and why; its new calls are refused from here. */
void peer_retire(struct peer *peer, const char *why);

/* The same, because the server goes. */
void peer_drain(struct peer *peer);

/* Every call that it has not finished, or those without a key, ends with that
 * status, if it can. give_up: all, with UNAVAILABLE. */
void peer_interrupt(struct peer *peer, enum idem_status status, bool keyed_too);
void peer_give_up(struct peer *peer);

/* Its connection ends when all is written; at once. */
void peer_finish(struct peer *peer);
void peer_cut(struct peer *peer);

/* For each peer of the server, or each that has said hello, without the lock.
 */
void peers_each(struct idem_server *server, bool ready_only,
                void (*visit)(struct peer *peer));

/* An END for a call that was never made, or is not listened to any more. */
void peer_end(struct peer *peer, const struct frame *open,
              const struct idem_error *err, enum idem_effect effect);

/* With the lock: one that goes away does not count what it refuses. */
void peer_note_open(struct peer *peer, uint32_t stream);

/* An OPEN makes no call: it is noted, and its END says REFUSED. */
void peer_refuse(struct peer *peer, const struct frame *open,
                 const struct idem_error *err);

/* The client does not listen to this stream any more. False: it did not. */
bool peer_detach(struct peer *peer, uint32_t stream);

/* --- server_plain.c --- */

/* What a plain client may call, and how: its nng sends a request again by
 * itself when it has waited long enough.
 *
 * @retval IDEM_INVALID_ARGUMENT     an effect, and no key
 * @retval IDEM_FAILED_PRECONDITION  an effect that nothing records
 */
enum idem_status plain_check_open(const struct header_open *open,
                                  const struct idem_method *method,
                                  struct idem_error *err) IDEM_MUST_CHECK;

/* What is wrong with a message that is not a call at all; false: nothing. */
bool plain_complain(const struct frame *frame, size_t max_message,
                    struct idem_error *err);

/* --- server_watch.c --- */

/* Begin, when it is taken in; end, when it is closed. */
void peer_watch_begin(struct peer *peer);
void peer_watch_end(struct peer *peer);

/* The connection's ping event. */
const char *peer_watch_ping(void *peer);

#endif
