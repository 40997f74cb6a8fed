#ifndef CODEC_H
#define CODEC_H

#include <idem/arena.h>
#include <idem/compression.h>
#include <idem/status.h>

/* A message, compressed, as a frame carries it (docs/wire.md): the codec's
 * number, the message's size in 4 bytes, little endian, and what the codec
 * made. */

#define CODEC_BIT(codec) (1U << (codec))
#define CODECS (CODEC_BIT(IDEM_CODEC_ZLIB) | CODEC_BIT(IDEM_CODEC_ZSTD))

/* INVALID_ARGUMENT: the option and the rule. */
enum idem_status codec_check(const struct idem_compression *compression,
                             struct idem_error *err) IDEM_MUST_CHECK;

/* False: it is under the threshold, would be no smaller, or memory is out: it
 * goes as it is. Compresses on this thread. */
bool codec_squeeze(struct idem_bytes *squeezed,
                   const struct idem_compression *compression,
                   struct idem_bytes message, struct idem_arena *arena);

enum codec_opened {
    CODEC_OPENED,
    CODEC_OVERSIZE, /* over the limit; message.size is what it says */
    CODEC_BROKEN,   /* a codec that is not known, or not what it made */
    CODEC_NO_MEMORY,
};

/* Never allocates more than limit bytes, nor more than what is said, and what
 * is not of just that size is broken. */
enum codec_opened codec_open(struct idem_bytes *message,
                             struct idem_bytes squeezed, size_t limit,
                             struct idem_arena *arena);

#endif
