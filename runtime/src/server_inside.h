#ifndef SERVER_INSIDE_H
#define SERVER_INSIDE_H

#include "call.h"
#include "connection.h"
#include "context.h"
#include "method_table.h"
#include "server.h"
#include "streams.h"
#include "timer.h"
#include "tls.h"
#include "worker.h"

/* What the files of the server share. Listeners (server_listen.c) make peers
 * (server_peer.c); a peer's OPEN (server_open.c) makes a call (server_call.c),
 * which walks down the chain to its handler (endpoint.c) and back up to END.
 *
 * Locks: a call's, a peer's and the server's are never held together but in
 * that order; then the connection's. No event, hook or handler runs under any.
 */

enum server_state {
    SERVER_NEW,
    SERVER_RUNNING,
    SERVER_DRAINING, /* or stopped: takes nothing new */
};

struct server_listener {
    struct idem_server *server;
    struct io_listener *io;
    struct server_listener *next;
    struct idem_timer pause; /* after an accept that failed */
};

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

struct later;
struct each;

struct server_call {
    struct call call;
    struct idem_context context;
    struct peer *peer; /* a reference of its connection */
    const struct method_entry *entry;
    uint32_t stream;
    struct idem_bytes route; /* a plain client's (plain.h); in the arena */
    struct server_call *next, **link; /* the peer's lock */
    struct job job;
    struct later *later; /* unary with dispatch ASYNC, from the endpoint on;
                          * else NULL */
    struct ProtobufCMessage *reply; /* of a stream in callback style */
    struct each *each;      /* of a stream whose messages are calls; or NULL */
    struct each *of_stream; /* of such a message: its stream's; or NULL */
};

struct idem_server {
    const struct idem_clock *clock;
    struct idem_server_options
        options;     /* no zeroes left; tls and auth are NULL */
    struct tls *tls; /* NULL: none */
    struct chain chain;
    struct method_table methods;
    struct idem_timers *timers;
    struct workers *workers;
    atomic_uint in_flight;    /* calls */
    atomic_bool leaving;      /* somebody waits for in_flight to be 0 */
    pthread_mutex_t stopping; /* one stop at a time */

    pthread_mutex_t lock;   /* guards the rest */
    pthread_cond_t changed; /* in_flight is 0, a peer closed or is gone */
    enum server_state state;
    struct server_listener *listeners, **last_listener;
    struct peer *peers, **last_peer; /* in order of arrival */
    unsigned n_peers;                /* not gone */
    unsigned n_open;                 /* of them, not closed */
    unsigned n_strange;              /* of them, without SETTINGS */
};

/* --- server_listen.c --- */
void server_accept(struct server_listener *listener);
void server_listeners_close(struct idem_server *server);
void server_listeners_free(struct idem_server *server);

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

/* --- server_open.c --- */
void server_call_open(struct peer *peer, const struct frame *frame,
                      const struct header_open *open,
                      const struct method_entry *entry);

/* --- server_call.c --- */

/* With one reference, the walk's, and room for a request of that size; its
 * method and all that is asked are not in it yet. NULL: out of memory. */
struct server_call *server_call_make(struct peer *peer,
                                     const struct call_ops *ops, size_t size);

/* One that is the peer's, with room for what the frame has; and with a second
 * reference, for call_begin_with. */
struct server_call *server_call_new(struct peer *peer,
                                    const struct frame *frame);

/* END, and the call leaves its peer. */
void server_call_end(struct server_call *call);

/* --- server_stream.c --- */

/* For a call whose method streams, before it is in its peer's lists. False: out
 * of memory. */
bool server_stream_new(struct server_call *call) IDEM_MUST_CHECK;

/* MESSAGE and WINDOW. */
void server_stream_frame(struct peer *peer, const struct frame *frame);

/* The peer's connection has room again. */
void server_stream_roomy(void *peer);

/* It was interrupted while its handler ran. */
void server_stream_interrupted(struct call *call);

/* Its client hears no more of the call, which may be a unary one: it is given
 * up, and of a stream nothing is said from when this returns. With a reference.
 */
void server_stream_unheard(struct server_call *call);

/* How the call ends of which its handler said that. */
enum idem_status server_stream_verdict(struct server_call *call,
                                       enum idem_status status);

/* A handler of dispatch ASYNC has returned. WAIT: idem_stream_close answers. */
enum idem_step server_stream_served(struct server_call *call,
                                    enum idem_status status);

/* The callbacks of one that stands at the endpoint may run. */
void server_stream_let_deliver(struct idem_stream *stream);

/* --- server_each.c: streams whose messages take effect once each --- */

/* The stream's call has come to the endpoint. */
enum idem_step server_each_begin(struct server_call *call);

/* What is due: a message is over, another one may begin, it is given up. For
 * stream_deliver. */
void server_each_due(struct idem_stream *stream);

/* What END says; 0: nothing. */
uint64_t server_each_watermark(const struct server_call *call);

/* With the stream's call. NULL is fine. */
void server_each_fini(struct each *each);

/* --- server_resume.c: server streams with a mode --- */

/* Before the chain: where the client stands. False: out of memory. */
bool server_resume_take(struct server_call *call,
                        const struct header_open *open) IDEM_MUST_CHECK;

/* The effect is recorded, the walk is over. True: the messages follow, and then
 * server_call_end. */
bool server_resume_begin(struct server_call *call);

/* --- endpoint.c --- */
enum idem_step endpoint_send(struct call *call);

/* A reply for the author's code to fill; NULL: there is none, and the call is
 * refused. */
struct ProtobufCMessage *endpoint_begin(struct server_call *call);

/* The author's code said OK: its reply is what the wire carries. One that
 * cannot be sent is its failure. */
void endpoint_pack(struct server_call *call,
                   const struct ProtobufCMessage *reply);

/* For idem_context_run. */
void endpoint_run(struct idem_context *context);

/* The end of a call in callback style, on any thread. */
void endpoint_close(struct server_call *call, enum idem_status status);

/* Turned away: too many wait for a worker. */
void endpoint_refuse_full(struct server_call *call);

/* --- endpoint_together.c --- */

/* For workers_set_let_go: the connection that a worker keeps. */
void endpoint_let_go(void *connection);

/* Jobs of this peer's calls that are sent down on this thread are gathered,
 * from here until NULL, for endpoint_push_gathered: one push, one wake. */
void endpoint_gather(struct peer *peer);
void endpoint_push_gathered(void);

/* Whether jobs of this peer's calls are gathered on this thread now. One that
 * is cannot be withdrawn before it is pushed; whoever runs it looks once more.
 */
bool endpoint_gathers(const struct peer *peer);
void endpoint_gather_job(struct workers *workers, struct job *job);

/* What is written now, or with the next replies of this worker. */
void endpoint_flush(struct connection *connection);

/* --- endpoint_later.c: handlers that keep their context --- */

/* Before the call is kept. False: it is refused. */
bool later_init(struct server_call *call);

/* Begin the handler. False: it was not begun, and the answer is in the call;
 * else it may be over already. */
bool later_run(struct server_call *call);

/* With the call's lock: nobody waits any more. */
void later_give_up(struct later *later);

/* NULL is fine. */
void later_fini(struct later *later);

static inline struct server_call *
server_call_of_context(const struct idem_context *context)
{
    return (struct server_call *)((uintptr_t)context -
                                  offsetof(struct server_call, context));
}

static inline struct server_call *
server_call_of_job(struct job *job)
{
    return (struct server_call *)((char *)job -
                                  offsetof(struct server_call, job));
}

static inline struct server_call *
server_call_of(struct call *call)
{
    return (struct server_call *)call;
}

#endif
