#ifndef IDEM_CALL_H
#define IDEM_CALL_H

#include <idem/arena.h>
#include <idem/clock.h>
#include <idem/interceptor.h>
#include <idem/metadata.h>
#include <idem/method.h>
#include <idem/outcome.h>
#include <idem/parent.h>
#include <idem/peer.h>
#include <idem/timer.h>

/* A call as interceptors see it, on the client and on the server alike. It
 * belongs to one thread at a time: the one whose hook runs, or the holder after
 * IDEM_WAIT. Only idem_call_interrupt is for any thread.
 *
 * In the request direction the request fields are filled and may be changed;
 * in the reply direction outcome, reply and trailers are. */
struct idem_call {
    const struct idem_method *method;
    const struct idem_clock *clock;
    struct idem_timers *timers;
    struct idem_arena *arena; /* lives as long as the call */

    struct idem_bytes key;       /* lives in the arena. data NULL: none; size 0
                                  * with data: the caller gave "" */
    unsigned attempt;            /* 1 for the first; what the wire says */
    unsigned attempt_timeout_ms; /* client: of one attempt, as the caller says;
                                  * 0: he does not */
    uint64_t ack_below;  /* with a session's key: the client has the answers of
                          * all below; 0: none */
    int64_t deadline_ns; /* monotonic; INT64_MAX: none */
    struct idem_bytes tenant; /* the authenticated identity; empty: none. The
                               * server begins with the peer certificate's */
    const struct idem_principal *principal; /* server: who calls; NULL: nobody
                                             * that is known */
    const struct idem_peer *peer;           /* server: whence */
    bool confidential; /* client: the metadata has a secret: the call goes only
                        * where nobody else reads it, else it fails (channel.h,
                        * tokens_in_plain) */
    bool advanced;     /* client: something of a stream that can be resumed has
                        * come since the retry looked last */
    bool committed;    /* client: a stream that cannot be begun again: something
                        * of it has come, or what was written is not kept */
    struct idem_metadata metadata;
    struct idem_bytes request; /* serialized; one buffer for all attempts */
    const struct ProtobufCMessage *message; /* unpacked request; the server's
                                             * validate fills it */
    struct idem_context *context;           /* server: what the handler gets */
    const struct idem_parent
        *parent; /* client: what its key follows from; NULL:
                  * it is nobody's child, or has a key */

    const char *waited_for; /* client: in its arena, said behind the words of an
                             * interruption; NULL: nothing that is known */

    struct idem_outcome outcome;
    struct idem_metadata trailers;
    /* Serialized; set when outcome.status is OK. A request hook that answers OK
     * gives data that is not NULL, also for an empty message, unless the effect
     * is REPLAYED: otherwise the call fails INTERNAL (case B043). */
    struct idem_bytes reply;
};

/* Somebody who keeps a call after IDEM_WAIT and can give it back early. */
struct idem_holder {
    /* Take the call out of whatever it waits in. True: it is out, the holder
     * will not resume it. False: it is not there; too late, the holder is about
     * to resume it, or too early, it is not there yet: then it is asked again
     * when the hook has returned IDEM_WAIT. Runs on any thread with the call's
     * own lock held: take only the holder's lock, call nothing of the call. Of
     * a call that is out it may write waited_for. */
    bool (*withdraw)(struct idem_call *call, void *holder);
};

/* A thread that runs handlers between two things that it does. */
struct idem_host {
    /* One of the handlers takes long, or is about to wait for another call:
     * what the thread would do next somebody else must. On any thread, without
     * a lock, once at most for each idem_call_resume_all_here; it may come when
     * that has just returned. */
    void (*stuck)(struct idem_host *host);
};

IDEM_BEGIN_DECLS

/* Move the call along its chain from where it waits, as if the hook that
 * returned IDEM_WAIT had now answered with step. From any thread, once for each
 * IDEM_WAIT, without a lock held. The call may be gone afterwards. */
IDEM_API void idem_call_resume(struct idem_call *call, enum idem_step step);

/* For a thread that resumes many calls at once, as a store's does after a
 * commit: run resume_all, and of a server's calls that it resumes let the jobs
 * for workers be pushed in one go and the answers leave in one write a
 * connection, when it returns. It must not block. One inside another is one. */
IDEM_API void idem_call_resume_all(void (*resume_all)(void *with), void *with);

/**
 * The same, and then run those of the calls' handlers on this thread that were
 * short lately, before it returns. Such a handler may block all the same. Of
 * one server's hosts one runs handlers at a time; the others' go to its
 * workers, as does what waits behind a handler that blocks.
 *
 * @param host  lives as long as the calls' server has workers, as an
 *              interceptor does
 *
 * Not inside of another one.
 */
IDEM_API void idem_call_resume_all_here(void (*resume_all)(void *with),
                                        void *with, struct idem_host *host);

/**
 * Say who keeps the call, just before it is put where another thread can find
 * it. A holder of NULL cannot give the call back before it is done: what it
 * does has to be done (record what a handler did) also when the caller gave up.
 *
 * An interruption on the request side says what the call has done so far; a
 * hook that waits for another call with the same key writes IN_DOUBT into
 * outcome.effect before, and that stays.
 *
 * @retval true   the caller keeps the call and then returns IDEM_WAIT; always
 *                with a holder of NULL
 * @retval false  the call is interrupted already: the outcome is set, return
 *                IDEM_ANSWER (request side) or IDEM_NEXT (reply side)
 */
IDEM_API bool idem_call_keep(struct idem_call *call,
                             const struct idem_holder *holder, void *with)
    IDEM_MUST_CHECK;

/**
 * Keep the call for delay_ns and then resume it with step. Return IDEM_WAIT
 * when it says true, as above when false. Interruption ends the wait.
 */
IDEM_API bool idem_call_sleep(struct idem_call *call, int64_t delay_ns,
                              enum idem_step step) IDEM_MUST_CHECK;

/* What an interceptor keeps with a call: NULL until set. Freed by nobody but
 * the interceptor's forget hook; memory of the arena needs none. */
IDEM_API void *idem_call_state(const struct idem_call *call,
                               const struct idem_interceptor *self);
IDEM_API void idem_call_set_state(struct idem_call *call,
                                  const struct idem_interceptor *self,
                                  void *state);

/**
 * Write the outcome of a call that is turned away or failed: the one way for an
 * interceptor to refuse. Clears the reply; the reason may be NULL.
 */
IDEM_API void idem_call_fail(struct idem_call *call, enum idem_status status,
                             enum idem_effect effect, const char *reason,
                             const char *format, ...) IDEM_PRINTF(5, 6);

/* As idem_call_fail, from an error that a function of ours filled. */
IDEM_API void idem_call_fail_with(struct idem_call *call,
                                  enum idem_effect effect,
                                  const struct idem_error *err);

/* Nanoseconds until the deadline; INT64_MAX without one; 0 when it is over. */
IDEM_API int64_t idem_call_remaining_ns(const struct idem_call *call);

/* The caller gave up, the peer is gone or the deadline is over. Advisory. */
IDEM_API bool idem_call_interrupted(const struct idem_call *call);

/* The status that it was given up with; OK: it was not. */
IDEM_API enum idem_status
idem_call_interrupted_by(const struct idem_call *call);

/* An earlier deadline for the call; a later one changes nothing. From a request
 * hook. */
IDEM_API void idem_call_lower_deadline(struct idem_call *call,
                                       int64_t deadline_ns);

/* Wait for a connection, unless the caller said fail_fast. From a request hook
 * of a channel. */
IDEM_API void idem_call_wait_for_ready(struct idem_call *call);

IDEM_END_DECLS

#endif
