#ifndef IDEM_INTERCEPTOR_H
#define IDEM_INTERCEPTOR_H

#include <idem/status.h>

struct idem_arena;
struct idem_call;
struct idem_channel;
struct idem_interceptor;

/* What a hook answers: where the call goes next. */
enum idem_step {
    IDEM_NEXT,   /* on to the next interceptor in this direction */
    IDEM_ANSWER, /* request side only: the answer is in the call, turn round */
    IDEM_AGAIN, /* reply side only: send the request down once more from here */
    IDEM_WAIT,  /* somebody keeps the call and will idem_call_resume() it */
};

/* Where in the chain an interceptor stands; the first is outermost. Within a
 * band the first added is outermost, on both sides (gRPC's rule). */
#define IDEM_BAND_LIST(X)                                                      \
    X(OBSERVE, "observe")                                                      \
    X(AUTH, "auth")                                                            \
    X(ALLOW, "allow") /* server: may who calls do so? */                       \
    X(DEADLINE, "deadline")                                                    \
    X(LIMIT, "limit")                                                          \
    X(VALIDATE, "validate")                                                    \
    X(KEY, "key")     /* client; the server's once stands here too */          \
    X(RETRY, "retry") /* client */                                             \
    X(ATTEMPT, "attempt")

enum idem_band {
#define IDEM_BAND_ENUM(name, text) IDEM_BAND_##name,
    IDEM_BAND_LIST(IDEM_BAND_ENUM)
#undef IDEM_BAND_ENUM
};

/* A hook may resume the call on another thread before it has returned
 * IDEM_WAIT, so it touches nothing of the call after it handed it over. */
typedef enum idem_step idem_intercept_fn(struct idem_interceptor *self,
                                         struct idem_call *call);

/* A message of a stream on its way through the chain. */
struct idem_stream_message {
    bool sent;                /* by this side; false: received */
    uint64_t number;          /* in its direction, from 1 */
    struct idem_bytes bytes;  /* serialized; may be replaced, by bytes … */
    struct idem_arena *arena; /* … of this, which lives as long as the message
                               */
};

/* Not IDEM_OK: err is filled. A message to be sent is not, and the writer is
 * told; one that was received ends the stream so. */
typedef enum idem_status
idem_intercept_message_fn(struct idem_interceptor *self, struct idem_call *call,
                          struct idem_stream_message *message,
                          struct idem_error *err);

struct idem_interceptor_ops {
    const char *name;
    enum idem_band band;

    /* Optional. Once per attempt, before the endpoint. Must not block: return
     * IDEM_WAIT and resume later. Many calls at once, on many threads. */
    idem_intercept_fn *request;

    /* Optional. Once per attempt whose request side went on from here with
     * IDEM_NEXT, in reverse order; who answers does not see its own answer.
     * Same rules. */
    idem_intercept_fn *reply;

    /* Optional. Each message of a stream, between the call's request and its
     * reply: inward on its way to the wire on a client and to the handler on a
     * server, outward on the other way. Not the request of a server stream and
     * not the reply of a client stream: those are the call's. Must not block;
     * of one direction of a call one at a time, on any thread. */
    idem_intercept_message_fn *message;

    /* Optional. Once per call in which request or reply ran, when the call is
     * over and about to be freed: drop what is kept in the call's state. */
    void (*forget)(struct idem_interceptor *self, struct idem_call *call);

    /* Optional. It is in this channel's chain, and no call was made yet. */
    void (*join)(struct idem_interceptor *self, struct idem_channel *channel);

    /* Optional. The channel or server begins to stop: calls that wait in this
     * interceptor are let go on with UNAVAILABLE. May run on any thread. */
    void (*stop)(struct idem_interceptor *self);

    /* Required. Runs once, when no call is in the chain any more. */
    void (*free)(struct idem_interceptor *self);
};

/* Embed as the first member. */
struct idem_interceptor {
    const struct idem_interceptor_ops *ops;
    unsigned slot; /* the chain's: where its state is in each call */
};

#endif
