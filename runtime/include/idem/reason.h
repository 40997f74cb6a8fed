#ifndef IDEM_REASON_H
#define IDEM_REASON_H

/* The reasons that the library itself gives, in outcome.reason: text that
 * programs may compare, beside the status for which each stands. */

/* INVALID_ARGUMENT: the key breaks a rule (semantics.md 3.11). */
#define IDEM_KEY_EMPTY "KEY_EMPTY"
#define IDEM_KEY_TOO_LONG "KEY_TOO_LONG"
#define IDEM_KEY_CHARSET "KEY_CHARSET"
#define IDEM_KEY_FORMAT "KEY_FORMAT"
#define IDEM_KEY_MISSING "KEY_MISSING"
#define IDEM_KEY_WEAK "KEY_WEAK"         /* secret_keys: it can be guessed */
#define IDEM_KEY_MISMATCH "KEY_MISMATCH" /* not the one that fields make */

/* INVALID_ARGUMENT: the key is recorded for another request. */
#define IDEM_KEY_REUSED "KEY_REUSED"

/* FAILED_PRECONDITION, final: the key never runs again. */
#define IDEM_KEY_EXPIRED "KEY_EXPIRED"
#define IDEM_KEY_ABANDONED "KEY_ABANDONED"
#define IDEM_KEY_STALE "KEY_STALE" /* its client had told that it is done */

/* FAILED_PRECONDITION or INVALID_ARGUMENT: a stream whose messages take effect
 * once each does not begin behind what took effect. */
#define IDEM_KEY_GAP "KEY_GAP"

/* ABORTED: the first call still runs; repeating it costs no attempt. */
#define IDEM_KEY_RUNNING "KEY_RUNNING"

/* ABORTED: a crash left the key in doubt; see resolve. */
#define IDEM_KEY_IN_DOUBT "KEY_IN_DOUBT"

/* ALREADY_EXISTS: done, but its answer is not kept (any more), or was too
 * large to be kept. */
#define IDEM_ANSWER_DROPPED "ANSWER_DROPPED"

/* UNAVAILABLE, never sent: there is no connection, and the call does not wait
 * for one (wait_for_ready). */
#define IDEM_NOT_CONNECTED "NOT_CONNECTED"

/* UNAUTHENTICATED, never sent: the call has a token, and the connection is
 * neither TLS nor inside this machine. */
#define IDEM_NOT_SECURE "NOT_SECURE"

/* UNAUTHENTICATED: who calls has not proved who he is, and the method wants to
 * know. */
#define IDEM_TOKEN_MISSING "TOKEN_MISSING"

/* UNAUTHENTICATED: what he has shown is no proof. */
#define IDEM_TOKEN_MALFORMED "TOKEN_MALFORMED" /* nothing that can be read */
#define IDEM_TOKEN_UNKNOWN "TOKEN_UNKNOWN"     /* nobody's here */
#define IDEM_TOKEN_ALGORITHM "TOKEN_ALGORITHM" /* "none", or not its key's */
#define IDEM_TOKEN_KEY "TOKEN_KEY"             /* signed by an unknown key */
#define IDEM_TOKEN_SIGNATURE "TOKEN_SIGNATURE" /* not signed by that key */
#define IDEM_TOKEN_EXPIRED "TOKEN_EXPIRED"
#define IDEM_TOKEN_EARLY "TOKEN_EARLY"       /* not valid yet */
#define IDEM_TOKEN_ISSUER "TOKEN_ISSUER"     /* of somebody else's making */
#define IDEM_TOKEN_AUDIENCE "TOKEN_AUDIENCE" /* made for others */

/* PERMISSION_DENIED: who calls is known, and may not call this method. */
#define IDEM_NOT_ALLOWED "NOT_ALLOWED"

/* RESOURCE_EXHAUSTED, never sent: max_in_flight calls of the channel are under
 * way, and the call does not wait. */
#define IDEM_TOO_MANY_IN_FLIGHT "TOO_MANY_IN_FLIGHT"

/* RESOURCE_EXHAUSTED, refused: the server has more to do than it lets in, or
 * the caller calls more often than it may (limit.h). The answer says when to
 * come back. */
#define IDEM_OVERLOADED "OVERLOADED"
#define IDEM_RATE_LIMITED "RATE_LIMITED"

/* DEADLINE_EXCEEDED: the time of one attempt is over, not that of the call. The
 * server goes on with it. */
#define IDEM_ATTEMPT_TIMEOUT "ATTEMPT_TIMEOUT"

/* FAILED_PRECONDITION: a plain nng client calls a method whose effect nothing
 * records. */
#define IDEM_NOT_RECORDED "NOT_RECORDED"

/* UNAVAILABLE: the authority cannot be asked; before the handler. */
#define IDEM_STORE_AWAY "STORE_AWAY"

/* RESOURCE_EXHAUSTED: the reply is over what the method stores, or over what
 * the caller takes. Repeating it makes it no smaller. */
#define IDEM_REPLY_TOO_LARGE "REPLY_TOO_LARGE"

/* RESOURCE_EXHAUSTED: the request is over what this or the other side takes;
 * the message names both sizes. Repeating it makes it no smaller. */
#define IDEM_REQUEST_TOO_LARGE "REQUEST_TOO_LARGE"

/* The message cannot be made of what was compressed. INVALID_ARGUMENT: the
 * request; INTERNAL: the reply, and the effect is what it is. */
#define IDEM_BAD_COMPRESSION "BAD_COMPRESSION"

#endif
