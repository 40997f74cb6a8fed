#ifndef IDEM_METHOD_H
#define IDEM_METHOD_H

#include <idem/status.h>

/* What the generator writes about a method: const data, never freed. The names
 * and defaults are those of idem/v1/options.proto, where each is explained. */

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;
struct idem_context;

enum idem_mode {
    IDEM_MODE_NONE = 1,        /* no effect: a read */
    IDEM_MODE_TRANSACTION = 2, /* effect and record commit together */
    IDEM_MODE_LEASED = 3,      /* effect is outside the database */
};

/* Which side sends more than one message: bits. */
enum idem_streams {
    IDEM_STREAMS_NONE = 0, /* unary */
    IDEM_STREAMS_CLIENT = 1,
    IDEM_STREAMS_SERVER = 2,
    IDEM_STREAMS_BOTH = 3,
};

/* TRANSACTION: how the handler writes. */
enum idem_transaction {
    IDEM_TRANSACTION_INTERACTIVE = 1, /* it runs SQL itself */
    IDEM_TRANSACTION_STATEMENT = 2,   /* it states its SQL, then makes the reply
                                       * of the rows: invoke runs in two halves
                                       * (<idem/statement.h>) */
};

enum idem_key_source {
    IDEM_KEY_MINTED = 1,  /* the client makes a key that carries its time */
    IDEM_KEY_FIELDS = 2,  /* the key is in the request */
    IDEM_KEY_SESSION = 3, /* the client's channel numbers its calls; a stream
                           * its messages, in a session of its own */
};

enum idem_in_flight {
    IDEM_IN_FLIGHT_WAIT = 1,        /* a duplicate waits for the first answer */
    IDEM_IN_FLIGHT_REJECT = 2,      /* a duplicate gets ABORTED at once */
    IDEM_IN_FLIGHT_ATTACH_ONLY = 3, /* it waits beside a first one on the same
                                     * server, else ABORTED at once */
};

enum idem_ask_redis {
    IDEM_ASK_REDIS_REPEATS = 1, /* attempts after the first */
    IDEM_ASK_REDIS_ALWAYS = 2,
    IDEM_ASK_REDIS_NEVER = 3,
};

enum idem_after_crash {
    IDEM_AFTER_CRASH_HOLD = 1,      /* in doubt until somebody resolves it */
    IDEM_AFTER_CRASH_PROBE = 2,     /* the author's callback finds out */
    IDEM_AFTER_CRASH_REEXECUTE = 3, /* downstream de-duplicates: run again */
};

enum idem_oversize {
    IDEM_OVERSIZE_FAIL = 1,
    IDEM_OVERSIZE_DIGEST = 2,
    IDEM_OVERSIZE_REBUILD = 3,
};

enum idem_dispatch {
    IDEM_DISPATCH_POOL = 1,   /* on a worker, or where it was read: may block */
    IDEM_DISPATCH_INLINE = 2, /* on the I/O thread: it never blocks */
    IDEM_DISPATCH_ASYNC = 3,  /* it keeps the context and answers later; of a
                               * stream: in callbacks (stream.h) */
};

/* What a probe found out of an execution that ended half-way. */
enum idem_probed {
    IDEM_PROBED_UNKNOWN = 0,  /* it cannot be said: the key stays in doubt */
    IDEM_PROBED_DONE = 1,     /* it took effect; this is its answer */
    IDEM_PROBED_NOT_DONE = 2, /* nothing of it stands: run the handler */
};

/* gRPC's retryPolicy (gRFC A6). All zero: the method is not retried. */
struct idem_retry_policy {
    unsigned max_attempts; /* the first included */
    int64_t initial_backoff_ms;
    int64_t max_backoff_ms;
    unsigned backoff_multiplier_milli; /* 1500 is 1.5 */
    uint32_t retryable;                /* bit 1 << code */
};

/* What the server lets in of a method. All zero: as much as of any. */
struct idem_limit_policy {
    unsigned max_in_flight; /* calls under way; 0: as many as the server's */
    unsigned max_waiting;   /* for one of these to end */
    unsigned rate_calls;    /* of one principal … 0: any number */
    int64_t rate_per_ms;    /* … in this time */
    unsigned rate_burst;    /* … and at once */
};

/* A path to a scalar field that is part of the key: offsets into nested
 * request structs, resolved by the generator. */
struct idem_key_field {
    const char *path;        /* "order.id" */
    const unsigned *numbers; /* field numbers from the request inward */
    unsigned depth;
};

/* A field that the fingerprint leaves out. */
struct idem_ignored_field {
    const struct ProtobufCMessageDescriptor *message;
    unsigned number;
};

/* A field that is a map: the message that has it and its number there. */
struct idem_map_field {
    const struct ProtobufCMessageDescriptor *message;
    unsigned number;
};

/* Who may call: whoever one of these lets in (options.proto's Allow). */
struct idem_allow {
    bool anyone;                   /* also who is not known */
    bool known;                    /* whoever has proved who he is */
    const char *const *identities; /* "svc:teller", "svc:*" */
    unsigned n_identities;
    const char *const *roles;
    unsigned n_roles;
};

/* The generator's glue: call the author's handler with its own types. */
typedef enum idem_status idem_invoke_fn(const void *handlers,
                                        struct idem_context *context,
                                        const struct ProtobufCMessage *request,
                                        struct ProtobufCMessage *reply);

/* The same for an author's probe and, which says as a handler does, rebuild. */
typedef enum idem_probed
idem_invoke_probe_fn(const void *handlers, struct idem_context *context,
                     const struct ProtobufCMessage *request,
                     struct ProtobufCMessage *reply);

struct idem_method {
    const char *name;  /* "payments.v1.Payments/Charge": on the wire */
    const char *scope; /* in the record's digest; the name unless aliased */
    bool shares_keys;  /* other methods have the scope, too: a key_group, or the
                        * sessions */
    const struct ProtobufCMessageDescriptor *request;
    const struct ProtobufCMessageDescriptor *reply;
    idem_invoke_fn *invoke;      /* UNIMPLEMENTED for an empty slot */
    idem_invoke_probe_fn *probe; /* after_crash PROBE; NULL: UNKNOWN */
    /* Of a server stream with a mode: invoke is the effect, and has no reply;
     * this reads and writes the messages, again after each loss. */
    idem_invoke_fn *messages;
    /* Of a client stream or a bidirectional one with a mode: what each of its
     * messages is a call of, and of a client stream also its end, whose reply
     * is the stream's. Both are unary, run the author's handlers under once,
     * and can be reached in no other way. Else NULL. */
    const struct idem_method *each, *end;
    idem_invoke_fn *rebuild; /* oversize REBUILD; NULL: as DIGEST */

    enum idem_streams streams;
    enum idem_mode mode;
    enum idem_dispatch dispatch;
    bool read_only;  /* idempotency_level = NO_SIDE_EFFECTS */
    bool idempotent; /* idempotency_level = IDEMPOTENT */

    enum idem_key_source key_source;
    bool key_required;
    bool secret_keys; /* an opaque key that can be guessed is refused */
    const struct idem_key_field *key_fields;
    unsigned n_key_fields;
    const struct idem_ignored_field *ignored;
    unsigned n_ignored;
    /* The map fields in the request and all that it contains: to protobuf-c
     * they are repeated messages, and the fingerprint must not see their order.
     */
    const struct idem_map_field *maps;
    unsigned n_maps;

    int64_t window_ms;        /* how long a key is remembered */
    int64_t timeout_ms;       /* default deadline of a call */
    int64_t lease_ms;         /* LEASED */
    int64_t max_execution_ms; /* LEASED: renewals end here */
    uint32_t recorded;        /* bit 1 << code: recorded, else released */
    enum idem_in_flight in_flight;
    enum idem_ask_redis ask_redis;
    enum idem_after_crash after_crash;
    bool steps;                        /* LEASED: the handler marks its steps */
    enum idem_transaction transaction; /* TRANSACTION */
    unsigned group; /* INTERACTIVE: so many may share a transaction; 0: none */
    unsigned max_executions; /* that may end badly; 0: any number */
    size_t max_reply;        /* bytes of the largest stored reply */
    enum idem_oversize oversize;
    struct idem_retry_policy retry;
    struct idem_limit_policy limit;
    const struct idem_allow *allow; /* NULL: neither the method nor its service
                                     * says */
};

struct idem_service {
    const char *name; /* "payments.v1.Payments" */
    const struct idem_method *methods;
    unsigned n_methods;
    struct idem_bytes descriptors; /* a serialized FileDescriptorSet: the
                                    * service's file and all that it imports */
};

#endif
