#ifndef HEADER_H
#define HEADER_H

#include <idem/metadata.h>
#include <idem/outcome.h>

/* The protobuf headers of idl/idem/v1/wire.proto, coded by hand: they are on
 * the hot path. Unknown fields are skipped, broken bytes are an error and never
 * a crash. Decoded views point into the bytes that were read. */

#define HEADER_METHOD_MAX 512  /* bytes of "package.Service/Method" */
#define HEADER_METHOD_IDS 4096 /* a client may number so many */
#define HEADER_EACH 4          /* each message of the client's has a key */

struct header_open {
    struct idem_bytes method; /* empty: the id was told before */
    uint32_t method_id;       /* 0: not interned */
    bool has_timeout;
    uint64_t timeout_us;
    struct idem_bytes key;
    uint32_t attempt; /* 0: left out, means 1 */
    uint64_t ack_below;
    uint32_t streams; /* bits: 1 the client's side, 2 the server's,
                       * HEADER_EACH */
    struct idem_bytes resume_token;
    uint64_t resume_after;
    bool plain_reply;           /* do not compress it */
    struct idem_bytes metadata; /* when read: the part that has its entries */
};

struct header_end {
    uint32_t status;
    uint32_t effect;
    bool final;
    struct idem_bytes message;
    struct idem_bytes reason;
    int64_t first_at_ms;
    uint32_t executions;
    bool rebuilt;
    bool has_retry_after;
    uint64_t retry_after_ms;
    int64_t server_time_ms;
    struct idem_bytes trailers; /* when read: the part that has its entries */
    uint64_t watermark;         /* 0: says nothing */
};

struct header_settings {
    uint32_t version;
    uint32_t max_message;
    uint32_t max_streams;
    int64_t time_ms;
    struct idem_bytes identity;
    uint32_t stream_window;
    uint32_t codecs; /* that this side can open: CODEC_BIT */
};

#define HEADER_TOKEN_MAX 1024 /* bytes */

struct header_message {
    struct idem_bytes token;
    uint64_t ack_below;
};

struct header_window {
    uint32_t credit;
    uint64_t watermark; /* 0: says nothing */
};

struct header_goaway {
    uint32_t last_stream;
    struct idem_bytes reason;
};

/* Encoders write into room bytes and return the size; 0 with a full buffer is
 * not possible within the limits of FRAME_HEADER_MAX, which is asserted.
 * metadata may be NULL. */
size_t header_open_write(uint8_t *bytes, size_t room,
                         const struct header_open *open,
                         const struct idem_metadata *metadata);
size_t header_end_write(uint8_t *bytes, size_t room,
                        const struct header_end *end,
                        const struct idem_metadata *trailers);
size_t header_settings_write(uint8_t *bytes, size_t room,
                             const struct header_settings *settings);
size_t header_goaway_write(uint8_t *bytes, size_t room,
                           const struct header_goaway *goaway);
size_t header_window_write(uint8_t *bytes, size_t room,
                           const struct header_window *window);
size_t header_message_write(uint8_t *bytes, size_t room,
                            const struct header_message *message);

/* False: not what wire.proto says. */
bool header_open_read(struct idem_bytes bytes, struct header_open *open)
    IDEM_MUST_CHECK;
bool header_end_read(struct idem_bytes bytes, struct header_end *end)
    IDEM_MUST_CHECK;
bool header_settings_read(struct idem_bytes bytes,
                          struct header_settings *settings) IDEM_MUST_CHECK;
bool header_message_read(struct idem_bytes bytes,
                         struct header_message *message) IDEM_MUST_CHECK;
bool header_window_read(struct idem_bytes bytes, struct header_window *window)
    IDEM_MUST_CHECK;
bool header_goaway_read(struct idem_bytes bytes, struct header_goaway *goaway)
    IDEM_MUST_CHECK;

/* The entries of an OPEN or END whose fields were read already, copied; bytes
 * are the header, or the part of it that has them. As idem_metadata_add;
 * INTERNAL also for a broken entry. */
enum idem_status header_open_metadata(struct idem_bytes bytes,
                                      struct idem_metadata *metadata,
                                      struct idem_arena *arena,
                                      struct idem_error *err) IDEM_MUST_CHECK;
enum idem_status header_end_trailers(struct idem_bytes bytes,
                                     struct idem_metadata *trailers,
                                     struct idem_arena *arena,
                                     struct idem_error *err) IDEM_MUST_CHECK;

#endif
