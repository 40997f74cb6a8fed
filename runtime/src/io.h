#ifndef IO_H
#define IO_H

#include <idem/clock.h>
#include <idem/status.h>

/* Byte streams, whatever carries them: nng_stream (tcp, ipc, abstract), memory
 * inside the process, and one around another that drops, delays, duplicates and
 * cuts for tests. The connection above knows only this.
 *
 * Every operation answers by its callback exactly once, on a thread of the
 * transport; a callback must not block, and may submit the next operation. The
 * callback of recv or send may run inside the submit only where `inline_ok` is
 * said. Lock order: the caller holds no lock that its callback takes. */

struct io_stream;
struct io_listener;

/* result is IDEM_OK with size bytes (0: closed by the peer), else UNAVAILABLE.
 */
typedef void io_done_fn(void *with, enum idem_status result, size_t size);

struct io_stream_ops {
    /* At least one byte into buffer. One at a time. */
    void (*recv)(struct io_stream *stream, void *buffer, size_t size,
                 io_done_fn *done, void *with);

    /* All of the parts, in order, with as few system calls as possible. One at
     * a time; the bytes stay untouched until done. At most 8 parts. */
    void (*send)(struct io_stream *stream, const struct idem_bytes *parts,
                 unsigned n, io_done_fn *done, void *with);

    /* Ends both directions; pending operations answer. Any thread, any number
     * of times. Submitting afterwards answers UNAVAILABLE. */
    void (*close)(struct io_stream *stream);

    /* Waits for callbacks, then frees. Not from a callback. */
    void (*free)(struct io_stream *stream);

    /* "tcp://127.0.0.1:4711"; "" when unknown. Lives as long as the stream. */
    const char *(*peer)(const struct io_stream *stream);
};

struct io_stream {
    const struct io_stream_ops *ops;
};

/* stream is NULL and err filled on failure. */
typedef void io_open_fn(void *with, struct io_stream *stream,
                        const struct idem_error *err);

struct io_listener_ops {
    /* The next connection; one at a time. UNAVAILABLE after close. */
    void (*accept)(struct io_listener *listener, io_open_fn *done, void *with);
    const char *(*address)(const struct io_listener *listener);
    void (*close)(struct io_listener *listener);
    void (*free)(struct io_listener *listener);
};

struct io_listener {
    const struct io_listener_ops *ops;
};

/* One transport: tcp and ipc are nng's, inproc is ours. A test puts its own in
 * front of another. */
struct io {
    const char *schemes; /* "tcp ipc abstract" */

    enum idem_status (*listen)(const struct io *io, const char *address,
                               struct io_listener **listener,
                               struct idem_error *err);

    /* done exactly once; the stream is the caller's. */
    void (*dial)(const struct io *io, const char *address, io_open_fn *done,
                 void *with);
};

extern const struct io io_nng;
extern const struct io io_inproc;

/* The transport of an address's scheme. INVALID_ARGUMENT names the scheme and
 * those that there are. */
enum idem_status io_find(const char *address, const struct io **io,
                         struct idem_error *err);

#endif
