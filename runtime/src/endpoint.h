#ifndef ENDPOINT_H
#define ENDPOINT_H

#include "server_call.h"

/* Where a server's calls end: the author's handlers, run where they were read,
 * on a worker, or later. Part of server_inside.h. */

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

#endif
