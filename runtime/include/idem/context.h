#ifndef IDEM_CONTEXT_H
#define IDEM_CONTEXT_H

#include <idem/arena.h>
#include <idem/metadata.h>
#include <idem/method.h>
#include <idem/outcome.h>
#include <idem/peer.h>

/* What a handler knows of the call that it answers. Valid until the handler
 * returns or, with dispatch ASYNC, completes it; one thread at a time. */
struct idem_context;

IDEM_BEGIN_DECLS

/* What was given to the service's register function. */
IDEM_API void *idem_context_user(const struct idem_context *context);

/**
 * Say why the call fails, and hand the status back:
 * `return idem_context_fail(context, IDEM_NOT_FOUND, "no account %s", id);`
 */
IDEM_API enum idem_status idem_context_fail(struct idem_context *context,
                                            enum idem_status status,
                                            const char *format, ...)
    IDEM_PRINTF(3, 4);

/* As above from an error that a function of ours filled. */
IDEM_API enum idem_status idem_context_fail_with(struct idem_context *context,
                                                 const struct idem_error *err);

/* When the call fails: the client is to wait exactly this long before it tries
 * again, if it does (gRPC's pushback); negative: it is not to try again. */
IDEM_API void idem_context_retry_after(struct idem_context *context,
                                       int64_t ms);

/* The reply is not compressed, nor what a stream writes from here on: a secret
 * stands in it beside what the caller may choose, and its size would tell
 * (BREACH). */
IDEM_API void idem_context_send_plain(struct idem_context *context);

/* Memory for the reply's strings and repeated fields, cleared: lives until the
 * reply is sent, or the handler is run again. Never NULL: when memory is out
 * the process stops. */
IDEM_API void *idem_context_alloc(struct idem_context *context, size_t size);
IDEM_API char *idem_context_printf(struct idem_context *context,
                                   const char *format, ...) IDEM_PRINTF(2, 3);
IDEM_API struct idem_arena *idem_context_arena(struct idem_context *context);

/* The call's key; "" without one. Pass it on, or derive from it, when the
 * effect is elsewhere, so that a re-run repeats the same key there. */
IDEM_API const char *idem_context_key(const struct idem_context *context);

/* 1 for the client's first attempt. */
IDEM_API unsigned idem_context_attempt(const struct idem_context *context);

/* The fencing token of a LEASED call: grows with each execution of the key. 0
 * in other modes. */
IDEM_API int64_t idem_context_fence(const struct idem_context *context);

/* False when the lease was lost: the result will be thrown away. Local. */
IDEM_API bool idem_context_owned(const struct idem_context *context);

/* Milliseconds until the caller's deadline; INT64_MAX without one. */
IDEM_API int64_t idem_context_remaining_ms(const struct idem_context *context);

/* The caller gave up, or its deadline is over. The effect still counts. */
IDEM_API bool idem_context_cancelled(const struct idem_context *context);

/**
 * Of a handler with dispatch ASYNC: the answer is there, status says which; the
 * handler has filled its reply, or has said why with idem_context_fail. Exactly
 * once a call, from any thread, also before the handler returns. Context,
 * request and reply are gone when it is called. It does not block, but for a
 * callback of idem_context_on_cancel that runs on another thread.
 */
IDEM_API void idem_context_complete(struct idem_context *context,
                                    enum idem_status status);

/**
 * Of a handler with dispatch ASYNC: be told, once, when idem_context_cancelled
 * becomes true: the caller gave up, its deadline is over, its connection is
 * lost (a call with a key goes on then), or the server stops. On a thread of
 * the library, without a lock held; it must not block, and it may complete the
 * call. It does not run any more when idem_context_complete has returned on
 * another thread. NULL: not any more. The call is to be completed all the same.
 */
IDEM_API void idem_context_on_cancel(struct idem_context *context,
                                     void (*cancelled)(void *with), void *with);

/* The fencing token of the LEASED call whose handler made this one, as its
 * server says; 0: none did. It grows with each execution there: a resource that
 * keeps the highest turns away who was thought dead. */
IDEM_API int64_t idem_context_parent_fence(const struct idem_context *context);

/* The authenticated identity; empty without one. */
IDEM_API struct idem_bytes
idem_context_tenant(const struct idem_context *context);

/* Who calls, with the roles that were proved; NULL: nobody that is known. */
IDEM_API const struct idem_principal *
idem_context_principal(const struct idem_context *context);

/* The other end of the connection, and what its certificate says. */
IDEM_API const struct idem_peer *
idem_context_peer(const struct idem_context *context);

/* Without what the server keeps for itself: names that begin with "idem-" and,
 * when the auth interceptor took it, "authorization". */
IDEM_API const struct idem_metadata *
idem_context_metadata(const struct idem_context *context);

/* A method of the server that answers this call: "package.Service/Method", or
 * the scope of its records, which is its old name when it was renamed. NULL:
 * none. */
IDEM_API const struct idem_method *
idem_context_method(const struct idem_context *context, const char *name);

/* What goes back beside the reply: as idem_metadata_add. */
IDEM_API enum idem_status idem_context_add_trailer(struct idem_context *context,
                                                   const char *name,
                                                   const char *value,
                                                   struct idem_error *err);

IDEM_END_DECLS

#endif
