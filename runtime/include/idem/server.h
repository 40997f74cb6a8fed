#ifndef IDEM_SERVER_H
#define IDEM_SERVER_H

#include <idem/clock.h>
#include <idem/compression.h>
#include <idem/interceptor.h>
#include <idem/method.h>
#include <idem/tls.h>

/* The server: addresses, services, a chain and a pool of workers.
 * new → add, register, listen → start → drain → stop → free. */
struct idem_server;
struct idem_auth_options;

struct idem_limit_options;

/* All zero is all defaults. */
struct idem_server_options {
    unsigned workers;    /* threads that run handlers; 0: 4 a core */
    unsigned max_queued; /* jobs that wait for a worker; 0: 10,000. Over it a
                          * call is REFUSED with RESOURCE_EXHAUSTED */
    unsigned max_connections; /* 0: 10,000 */
    unsigned max_streams;   /* calls in flight on one connection; 0: 100,000 */
    unsigned max_streaming; /* … of them calls of many messages; 0: 1,000 */
    uint32_t stream_window; /* bytes of one of these that come unasked: its
                             * memory, with a message; 0: 256 KiB */
    size_t max_message;     /* bytes each way; 0: 4 MiB */
    size_t max_metadata; /* of a call, as metadata.h counts; 0: 8,192, which is
                          * the most */
    unsigned max_depth;  /* of messages inside messages; 0: 100, the most */
    int64_t hello_timeout_ms; /* for a new connection's preface; 0: 10,000 */
    int64_t stall_timeout_ms; /* for a frame that is begun, to come or to be
                               * taken, and 1 ms more for each 8 bytes of it;
                               * 0: 30,000 */
    int64_t idle_timeout_ms;  /* without a call; 0: 1,800,000 */
    int64_t max_age_ms;       /* of a connection, up to 10 % more or less;
                               * 0: any */
    int64_t age_grace_ms;     /* for its calls after that; 0: 10,000 */
    unsigned max_pings;       /* of a connection in a minute; 0: 60 */
    int64_t drain_ms;         /* how long stop waits for calls; 0: 10,000 */
    const struct idem_limit_options *limits; /* of idem_server_open's limit
                                              * (limit.h); NULL: defaults */
    const struct idem_clock *clock; /* NULL: the system's. Must outlive it */
    const struct idem_tls_options *tls; /* of "tls+…" addresses; copied. NULL:
                                         * there are none */
    struct idem_compression compression; /* of replies */
    /* Who calls, and who may (auth.h); read by idem_server_open. NULL: nobody
     * is asked for a token. */
    const struct idem_auth_options *auth;
};

IDEM_BEGIN_DECLS

/* With validate alone in its chain; idem_server_open (standard.h) makes one
 * with all that a server wants. */
IDEM_API enum idem_status
idem_server_new(struct idem_server **server,
                const struct idem_server_options *options,
                struct idem_error *err) IDEM_MUST_CHECK;

/* As idem_channel_add, before start. */
IDEM_API enum idem_status idem_server_add(struct idem_server *server,
                                          struct idem_interceptor *interceptor,
                                          struct idem_error *err)
    IDEM_MUST_CHECK;

/* Generated register functions call this. handlers is the author's table,
 * copied (size bytes); user is what idem_context_user gives back.
 *
 * @retval IDEM_ALREADY_EXISTS       the service is registered
 * @retval IDEM_INVALID_ARGUMENT     a method's options contradict each other,
 *                                   or its scope (alias) is another method's
 * @retval IDEM_FAILED_PRECONDITION  the server runs, or a method's mode needs
 *                                   the once interceptor and it was not added
 */
IDEM_API enum idem_status
idem_server_register(struct idem_server *server,
                     const struct idem_service *service, const void *handlers,
                     size_t size, void *user, struct idem_error *err)
    IDEM_MUST_CHECK;

/**
 * Listen on one more address: "tcp://127.0.0.1:0", "ipc:///run/pay.sock",
 * "inproc://name", and with TLS "tls+tcp://127.0.0.1:0".
 *
 * @retval IDEM_UNAVAILABLE       in use, or not to be bound: says which
 * @retval IDEM_INVALID_ARGUMENT  not an address of ours, or one with TLS and
 *                                the server has no TLS options
 */
IDEM_API enum idem_status idem_server_listen(struct idem_server *server,
                                             const char *address,
                                             struct idem_error *err)
    IDEM_MUST_CHECK;

/* The address that listen made, with the port that it got. */
IDEM_API const char *idem_server_address(const struct idem_server *server,
                                         unsigned index);

/* Take calls. Refused when a registered method of mode TRANSACTION or LEASED
 * has no once interceptor in the chain, or one that is not for anyone no
 * interceptor of band ALLOW. */
IDEM_API enum idem_status idem_server_start(struct idem_server *server,
                                            struct idem_error *err)
    IDEM_MUST_CHECK;

/* The chain, outermost first: "health > allow > deadline > limit > validate >
 * once". */
IDEM_API const char *idem_server_chain(struct idem_server *server);

/* The services that it has, in no order; NULL past the last. */
IDEM_API const struct idem_service *
idem_server_service(const struct idem_server *server, unsigned index);

/* It was started, and was not told to drain or stop. From any thread. */
IDEM_API bool idem_server_is_running(struct idem_server *server);

/* Tell the clients to go elsewhere and refuse new calls; calls in flight go on.
 * Returns at once. */
IDEM_API void idem_server_drain(struct idem_server *server);

/* Drain, wait for the calls in flight up to drain_ms, then cut. Any number of
 * times, from any thread but a handler's or a callback's. */
IDEM_API void idem_server_stop(struct idem_server *server);

/* Stops first when it runs, and waits for handlers that have not answered: they
 * see that their call was given up (context.h). NULL is fine. */
IDEM_API void idem_server_free(struct idem_server *server);

IDEM_END_DECLS

#endif
