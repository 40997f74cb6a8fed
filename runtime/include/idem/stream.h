#ifndef IDEM_STREAM_H
#define IDEM_STREAM_H

#include <idem/channel.h>
#include <idem/context.h>
#include <idem/message.h>

/* A call of many messages: one end of it, the client's or the handler's.
 * Generated stubs wrap all of this with the types of a method
 * (docs/streaming.md).
 *
 * Each side writes messages until it ends its side; they come in order, each
 * once, or the stream fails. The reader's credit bounds what is under way: a
 * reader that is slow stops its writer, and nobody else.
 *
 * One thread at a time writes, and one reads; they may be two. Cancel is for
 * any thread. */
struct idem_stream;

/* The glue between the library and an author's typed callbacks. Those of one
 * stream run one at a time, without a lock held, and must not block. */
struct idem_stream_glue {
    /* True: taken. False: not now. It is kept, what is behind it too, and it
     * comes again after writable, or idem_stream_resume. */
    bool (*message)(struct idem_stream *stream, const void *callbacks,
                    const struct ProtobufCMessage *message);
    /* A write that found no room will find it now. */
    void (*writable)(struct idem_stream *stream, const void *callbacks);
    /* Once, last. Of a client: the call is over; reply is that of a client
     * stream that ended OK. Of a handler: OK, the client has ended its side;
     * else it gave up. The outcome is there while this runs. */
    void (*end)(struct idem_stream *stream, const void *callbacks,
                const struct ProtobufCMessage *reply,
                const struct idem_outcome *outcome);
};

IDEM_BEGIN_DECLS

/* --- The client's end ----------------------------------------------------- */

/**
 * Begin a stream in blocking style. What goes wrong is told by write, next and
 * finish. Give it back with idem_stream_finish.
 *
 * @param request  what a server stream asks for; NULL of the other kinds
 * @param options  NULL is all defaults; trailers must live until finish, which
 *                 fills them
 */
IDEM_API struct idem_stream *
idem_stream_open(struct idem_channel *channel, const struct idem_method *method,
                 const struct ProtobufCMessage *request,
                 const struct idem_call_options *options);

/* The same in callback style: on threads of the library, or in
 * idem_channel_process (own_loop), and never inside this function. callbacks
 * must live until end has run. Give it back with idem_stream_release. */
IDEM_API struct idem_stream *
idem_stream_start(struct idem_channel *channel,
                  const struct idem_method *method,
                  const struct ProtobufCMessage *request,
                  const struct idem_call_options *options,
                  const struct idem_stream_glue *glue, const void *callbacks);

/* The client writes no more. Any number of times. */
IDEM_API void idem_stream_end(struct idem_stream *stream);

/**
 * End the client's side, wait until the call is over, throw away what is still
 * unread, and free the stream. To leave early, cancel first.
 *
 * @param reply  of a client stream, as in idem_channel_call; else NULL
 */
IDEM_API enum idem_status idem_stream_finish(struct idem_stream *stream,
                                             struct ProtobufCMessage **reply,
                                             struct idem_outcome *outcome);

/* Callback style: the trailers of the end, in its callback and from then on. */
IDEM_API const struct idem_metadata *
idem_stream_trailers(const struct idem_stream *stream);

/* Give the call up: it ends with CANCELLED unless it is over already. */
IDEM_API void idem_stream_cancel(struct idem_stream *stream);

/* Callback style: drop the handle, the stream goes on. NULL is fine. */
IDEM_API void idem_stream_release(struct idem_stream *stream);

/* --- A handler's end ------------------------------------------------------ */

/* That of the call; NULL: it is unary. */
IDEM_API struct idem_stream *
idem_context_stream(const struct idem_context *context);

/* Whose handler it is. */
IDEM_API struct idem_context *
idem_stream_context(const struct idem_stream *stream);

/* dispatch ASYNC: from inside the handler, before it returns OK. The call goes
 * on until idem_stream_close. callbacks must live until then. */
IDEM_API void idem_stream_serve(struct idem_stream *stream,
                                const struct idem_stream_glue *glue,
                                const void *callbacks, void *user);

/* dispatch ASYNC: the handler's end of the call, as if it returned this. Once;
 * on any thread, also inside a callback. The stream may be gone afterwards. */
IDEM_API void idem_stream_close(struct idem_stream *stream,
                                enum idem_status status);

/* --- A server stream with a mode: the effect is once, the messages resume --
 */

/* From the handler of the effect: what the handler of the messages gets back,
 * also on another server, after a crash, and for a repeat. It is the record's
 * reply. Copied. RESOURCE_EXHAUSTED: out of memory. */
IDEM_API enum idem_status idem_context_keep(struct idem_context *context,
                                            struct idem_bytes bytes,
                                            struct idem_error *err)
    IDEM_MUST_CHECK;

/* From the handler of the messages: what was kept; empty: nothing. */
IDEM_API struct idem_bytes idem_stream_kept(const struct idem_stream *stream);

/* Where the client stands: the mark of the last message that it has which had
 * one; empty: begin at the beginning. What is written from there on and the
 * client has is left out by itself. */
IDEM_API struct idem_bytes
idem_stream_resumed_at(const struct idem_stream *stream);

/* The next message has this mark, at most 1,024 bytes, which must live until it
 * is written. Without marks a stream is written from its beginning again. */
IDEM_API void idem_stream_mark(struct idem_stream *stream,
                               struct idem_bytes mark);

/* --- A client stream or a bidirectional one with a mode: each message is once
 * ---
 *
 * The messages are numbered in a session of the stream's, from 1; each takes
 * effect once by its number, in order. What took effect is counted by the
 * watermark, and what did not is kept, 256 KiB and a message at most, and
 * written again by the library when the stream is lost: idem_stream_write waits
 * meanwhile, or says UNAVAILABLE. docs/streaming.md, "Once". */

/* Client, any thread: all messages of the session up to this number took
 * effect. In a bidirectional stream: and their answers are here. */
IDEM_API int64_t idem_stream_watermark(struct idem_stream *stream);

/**
 * Client, any thread: the key of the message behind the watermark. As the key
 * of another stream's options, of this process or another one, that stream goes
 * on from there: what it writes first is that message. text receives at most
 * IDEM_KEY_MAX + 1 bytes.
 *
 * A session of the caller's own (idem_session_mint, idem_key_of_session with 1)
 * is known before the stream is begun, and its records are kept until they
 * expire; those of the library's own session go as the watermark passes them.
 *
 * @retval false  not known yet: the stream was not begun at any server
 */
IDEM_API bool idem_stream_key(struct idem_stream *stream, char *text)
    IDEM_MUST_CHECK;

/* --- Both ----------------------------------------------------------------- */

/**
 * Write a message. In blocking style this waits for room.
 *
 * @retval IDEM_OK                   it is on its way
 * @retval IDEM_UNAVAILABLE          callback style: no room now. writable comes
 *                                   when there is some
 * @retval IDEM_RESOURCE_EXHAUSTED   it is larger than this side or the peer
 *                                   takes; the stream stays as it is
 * @retval IDEM_INTERNAL             it cannot be packed; the stream stays
 * @retval IDEM_FAILED_PRECONDITION  this side has ended, or the call is over
 *                                   with OK
 * @return else what ended the call
 */
IDEM_API enum idem_status
idem_stream_write(struct idem_stream *stream,
                  const struct ProtobufCMessage *message) IDEM_MUST_CHECK;

/* Blocking style: the next message, which lives until the next one is asked
 * for. NULL: there is none any more; idem_stream_finish, or in a handler
 * idem_context_cancelled, says whether it was the peer's end. */
IDEM_API const struct ProtobufCMessage *
idem_stream_next(struct idem_stream *stream);

/* Callback style: a message that was not taken comes again. */
IDEM_API void idem_stream_resume(struct idem_stream *stream);

/* options.user, or what idem_stream_serve was given. */
IDEM_API void *idem_stream_user(const struct idem_stream *stream);

IDEM_END_DECLS

#endif
