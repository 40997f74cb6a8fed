#ifndef IO_H
#define IO_H

#include <idem/clock.h>
#include <idem/status.h>

/* Byte streams, whatever carries them: sockets (tcp, ipc), nng_stream (these
 * too, and abstract), memory inside the process, TLS around another, and one
 * around another that drops, delays, duplicates and cuts for tests. The
 * connection above knows only this.
 *
 * An operation that was taken (true) answers by its callback exactly once, on a
 * thread of the transport and never inside the submit. A callback must not
 * block, and may submit the next operation. */

#define IO_PARTS 8 /* nng takes no more (core/aio.h of 1.5.2) */

struct io_stream;
struct io_listener;
struct io_dialer;

/* result is IDEM_OK with size bytes (0: closed by the peer), else UNAVAILABLE.
 */
typedef void io_done_fn(void *with, enum idem_status result, size_t size);

/* Forget of n parts the bytes that are written; returns how many parts are
 * left. */
unsigned io_skip(struct idem_bytes *parts, unsigned n, size_t written);

struct io_stream_ops {
    /* At least one byte into buffer. One at a time. False: closed, and done
     * will not run. */
    bool (*recv)(struct io_stream *stream, void *buffer, size_t size,
                 io_done_fn *done, void *with);

    /* All of the parts, in order, with as few system calls as possible. One at
     * a time; the bytes (not the array) stay untouched until done. At most
     * IO_PARTS. False as above. */
    bool (*send)(struct io_stream *stream, const struct idem_bytes *parts,
                 unsigned n, io_done_fn *done, void *with);

    /* Optional. What the transport takes at once of the parts, without a
     * callback; returns how many bytes. 0 says nothing: send tells whether it
     * is closed. What it does not take is sent with send next, and nothing
     * before it. Not while a send is pending. */
    size_t (*send_now)(struct io_stream *stream, const struct idem_bytes *parts,
                       unsigned n);

    /* Ends both directions; pending operations answer. Any thread, any number
     * of times. */
    void (*close)(struct io_stream *stream);

    /* When no operation is pending. From anywhere, also as the last act of one
     * of its callbacks. */
    void (*free)(struct io_stream *stream);

    /* "tcp://127.0.0.1:4711"; "" when unknown. Lives as long as the stream. */
    const char *(*peer)(const struct io_stream *stream);

    /* Optional. Who the other end has proved to be; "": nobody. Asked when
     * bytes have come, and lives as long as the stream. */
    const char *(*identity)(const struct io_stream *stream);

    /* Optional. Why it is over, if the transport knows; "": it does not. Asked
     * when an operation has failed, and lives as long as the stream. */
    const char *(*trouble)(const struct io_stream *stream);

    /* Nobody in between can read it, and a client's other end is who was
     * dialled. */
    bool secure;
};

struct io_stream {
    const struct io_stream_ops *ops;
};

/* stream is the receiver's; NULL, and err filled, on failure. */
typedef void io_open_fn(void *with, struct io_stream *stream,
                        const struct idem_error *err);

struct io_listener_ops {
    /* The next connection; one at a time. False: closed. */
    bool (*accept)(struct io_listener *listener, io_open_fn *done, void *with);
    const char *(*address)(const struct io_listener *listener);
    /* A pending accept answers. */
    void (*close)(struct io_listener *listener);
    /* Closes, waits for callbacks, frees. Not from a callback. */
    void (*free)(struct io_listener *listener);
};

struct io_listener {
    const struct io_listener_ops *ops;
};

struct io_dialer_ops {
    /* One connection; once. False: closed. */
    bool (*dial)(struct io_dialer *dialer, io_open_fn *done, void *with);
    /* A pending dial answers. Any thread. */
    void (*close)(struct io_dialer *dialer);
    /* When no dial is pending; also as the last act of its callback. */
    void (*free)(struct io_dialer *dialer);
};

struct io_dialer {
    const struct io_dialer_ops *ops;
};

/* One transport: tcp and ipc by the system's sockets or by nng, inproc is ours.
 * A test puts its own in front of another. */
struct io {
    const char *schemes; /* "tcp ipc abstract" */
    const char *bare;    /* what an address without a scheme is given; NULL:
                          * "tcp://" */

    /* UNAVAILABLE: in use or not to be bound. INVALID_ARGUMENT: no address. */
    enum idem_status (*listen)(const struct io *io, const char *address,
                               struct io_listener **listener,
                               struct idem_error *err);

    /* Does not connect yet. INVALID_ARGUMENT: no address. */
    enum idem_status (*dialer)(const struct io *io, const char *address,
                               struct io_dialer **dialer,
                               struct idem_error *err);
};

extern const struct io io_socket;
extern const struct io io_nng;
extern const struct io io_inproc;

/* The transport of an address's scheme. INVALID_ARGUMENT names the scheme and
 * those that there are. */
enum idem_status io_find(const char *address, const struct io **io,
                         struct idem_error *err) IDEM_MUST_CHECK;

#endif
