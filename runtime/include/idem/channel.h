#ifndef IDEM_CHANNEL_H
#define IDEM_CHANNEL_H

#include <idem/clock.h>
#include <idem/compression.h>
#include <idem/interceptor.h>
#include <idem/metadata.h>
#include <idem/method.h>
#include <idem/outcome.h>
#include <idem/placement.h>
#include <idem/tls.h>

/* The client's end: one channel, the addresses of one target, many calls from
 * many threads at once. Generated stubs call through it. */
struct idem_channel;
struct idem_call;
struct idem_context;
struct idem_policy_options;
struct idem_token_options;

/* All zero is all defaults. */
struct idem_channel_options {
    int64_t timeout_ms;          /* of a call that states none; 0: the method's,
                                  * and 10,000 when that is 0 too */
    enum idem_balancer balancer; /* 0: pick_first */
    int64_t connect_backoff_ms;  /* first pause; 0: 100, or the longest when
                                  * that is less; doubles, +-20 % */
    int64_t connect_backoff_max_ms; /* 0: 10,000, or the first when that is
                                     * more; a day at most */
    int64_t resolve_ms;   /* dns: looked up again after so long; 0: 30,000 */
    int64_t keepalive_ms; /* while calls fly, a PING after so long; 0: 30,000 */
    int64_t
        keepalive_timeout_ms; /* silence that ends a connection; 0: 20,000 */
    struct idem_outlier_options outlier;
    unsigned max_in_flight; /* calls on all addresses together: over it a call
                             * fails, or waits (wait_for_ready); 0: no limit */
    size_t max_message;     /* bytes each way; 0: 4 MiB */
    uint32_t stream_window; /* bytes of a stream that come unasked; 0: 256 KiB.
                             * More is faster on long ways, and memory */
    size_t max_buffered;    /* bytes of requests that wait or fly; 0: 64 MiB */
    struct idem_compression compression; /* of requests */
    bool own_loop; /* callbacks run in idem_channel_process, and nowhere else */
    const struct idem_clock *clock; /* NULL: the system's. Must outlive it */
    /* With it all addresses are "tls+…", and one without a scheme is
     * tls+tcp's. Copied. NULL: none are. */
    const struct idem_tls_options *tls;
    /* Read by idem_client_open (policy.h); NULL is all defaults. */
    const struct idem_policy_options *policy;
    /* The token that goes with each call (token.h); read by idem_client_open.
     * NULL: none. */
    const struct idem_token_options *token;
    /* Calls with a token ("authorization" in their metadata) also go where
     * others may read it. False: by TLS, or on this machine (ipc, abstract,
     * inproc, loopback), else they fail NOT_SECURE. */
    bool tokens_in_plain;
};

struct idem_call_options {
    int64_t timeout_ms; /* of the whole call; 0: the channel's; negative: it is
                         * over, and nothing is sent; INT64_MAX: none */
    int64_t attempt_timeout_ms; /* of one attempt: then the next one asks, under
                                 * the same key (policy.md); over what a config
                                 * says. For calls with a key or a declared
                                 * idempotence. 0: the config's, or none */
    const char *key;     /* NULL: as the method says (minted, or from fields) */
    bool wait_for_ready; /* false: an attempt fails at once while the server is
                          * away, NOT_CONNECTED, and the retry policy counts it
                          * as one; true: it waits, until the deadline */
    bool fail_fast;      /* the opposite, also when a service config says
                          * waitForReady; not beside wait_for_ready */
    const struct idem_call_metadata *metadata; /* NULL or an array … */
    size_t n_metadata;                         /* … of this many; copied */
    void *user; /* idem_call_user() gives it back to the callback */
    /* Of a blocking call: receives the trailers of its answer, also of one that
     * is not OK; empty when there are none. Free it with idem_trailers_free.
     * NULL: not wanted. */
    struct idem_metadata *trailers;
    bool no_compression; /* neither the request nor the reply: a secret stands
                          * beside what somebody else may choose (BREACH) */

    /* Of a call that a handler makes (parent.h). */
    struct idem_context *parent; /* NULL: that of the handler which runs on this
                                  * thread. Read before start returns */
    const char *step;  /* a name of this call among those of its parent, for
                        * its key; NULL: by method and number, in the order
                        * in which the handler makes them */
    bool own_deadline; /* not cut to what is left of the parent's */
    bool no_parent;    /* nothing of the handler's call goes with it */
};

struct idem_call_metadata {
    const char *name;
    struct idem_bytes value;
};

IDEM_BEGIN_DECLS

/**
 * Make a channel without interceptors; idem_client_open (standard.h) makes one
 * with those that a client wants. It connects in the background; a call that
 * comes first waits until each address was tried once.
 *
 * @param target  "tcp://127.0.0.1:7070", "ipc:///run/pay.sock", "inproc://x",
 * or several: "list://10.0.0.1:7070,10.0.0.2:7070"
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT  the target or an option, named
 */
IDEM_API enum idem_status
idem_channel_new(struct idem_channel **channel, const char *target,
                 const struct idem_channel_options *options,
                 struct idem_error *err) IDEM_MUST_CHECK;

/* End all calls with CANCELLED, then free. Waits for callbacks that run; not
 * from inside a callback. NULL is fine. */
IDEM_API void idem_channel_close(struct idem_channel *channel);

/**
 * Add an interceptor before the first call; the channel owns it from here, also
 * on failure.
 *
 * @retval IDEM_FAILED_PRECONDITION  a call was made already
 * @retval IDEM_RESOURCE_EXHAUSTED   the chain is full
 */
IDEM_API enum idem_status idem_channel_add(struct idem_channel *channel,
                                           struct idem_interceptor *interceptor,
                                           struct idem_error *err)
    IDEM_MUST_CHECK;

/* How far the server's wall clock is ahead of this channel's, by its last
 * answer and but for the way that it took; 0 before the first. Any thread. */
IDEM_API int64_t idem_channel_skew_ms(const struct idem_channel *channel);

/* The first interceptor of the chain with these ops; NULL: none. */
IDEM_API struct idem_interceptor *
idem_channel_find(struct idem_channel *channel,
                  const struct idem_interceptor_ops *ops);

/* The chain, outermost first: "deadline > key > retry". Static per channel. */
IDEM_API const char *idem_channel_chain(struct idem_channel *channel);

/* For an event loop of the caller's (own_loop): readable while callbacks wait.
 * It is the channel's; -1 without own_loop. */
IDEM_API int idem_channel_fd(const struct idem_channel *channel);

/* Run the callbacks that wait, on this thread; how many. They may start calls
 * and may not block or close the channel. One thread at a time. Closing runs
 * those that are left. */
IDEM_API unsigned idem_channel_process(struct idem_channel *channel);

/* Generated stubs call these. ---------------------------------------------- */

/* The glue between the library and an author's typed callback. The library
 * unpacks the reply, which lives while this runs and is NULL unless the outcome
 * is OK; author is what idem_channel_start was given, cast back by the glue. */
typedef void idem_call_done_fn(struct idem_call *call,
                               const struct ProtobufCMessage *reply,
                               const struct idem_outcome *outcome,
                               void (*author)(void));

/**
 * Call and wait. On OK *reply is unpacked on the heap with malloc: free it with
 * the generated free function. reply, options and outcome may be NULL. *reply
 * is written on OK only.
 */
IDEM_API enum idem_status idem_channel_call(
    struct idem_channel *channel, const struct idem_method *method,
    const struct ProtobufCMessage *request, struct ProtobufCMessage **reply,
    const struct idem_call_options *options, struct idem_outcome *outcome);

/**
 * Start a call. done runs exactly once, on a thread of the library, without a
 * lock held and never inside this function. It must not block, since the
 * channel's other answers wait behind it: a blocking call in it is refused with
 * FAILED_PRECONDITION. It may start calls.
 *
 * @return a handle that the caller gives back with idem_call_release, also
 *         after done has run
 */
IDEM_API struct idem_call *
idem_channel_start(struct idem_channel *channel,
                   const struct idem_method *method,
                   const struct ProtobufCMessage *request,
                   const struct idem_call_options *options,
                   idem_call_done_fn *done, void (*author)(void));

/* A recorded reply from its bytes, checked and unpacked as that of a call. */
IDEM_API enum idem_status idem_channel_read_reply(
    const struct idem_method *method, struct idem_bytes bytes,
    struct ProtobufCMessage **reply, struct idem_error *err) IDEM_MUST_CHECK;

/* Handles of started calls. ------------------------------------------------ */

/* Give the call up: it ends with CANCELLED unless it is over already. Whether
 * it took effect is in the outcome. From any thread, any number of times. */
IDEM_API void idem_call_cancel(struct idem_call *call);

/* The user pointer of the call's options. */
IDEM_API void *idem_call_user(const struct idem_call *call);

/* The trailers of the answer: in the callback, and from then on until the
 * handle is released. Empty while the call is under way. */
IDEM_API const struct idem_metadata *
idem_call_trailers(const struct idem_call *call);

/* Free what a blocking call put into its options' trailers; it is empty
 * afterwards. One that is empty or NULL is fine. */
IDEM_API void idem_trailers_free(struct idem_metadata *trailers);

/* Drop the handle; the call goes on. NULL is fine. */
IDEM_API void idem_call_release(struct idem_call *call);

IDEM_END_DECLS

#endif
