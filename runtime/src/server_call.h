#ifndef SERVER_CALL_H
#define SERVER_CALL_H

#include "call.h"
#include "connection.h"
#include "context.h"
#include "header.h"
#include "method_table.h"
#include "worker.h"

/* A call at the server, from OPEN to END, and the streams among them. Part of
 * server_inside.h, which says in what order locks are taken. */

struct peer;
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
