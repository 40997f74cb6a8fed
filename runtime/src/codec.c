#include "codec.h"

#include "codec_zlib.h"
#include "codec_zstd.h"

#include <stdlib.h>

#define HEAD 5 /* codec, size */
#define THRESHOLD 1024

static int
level_max(enum idem_codec codec)
{
    return codec == IDEM_CODEC_ZLIB ? CODEC_ZLIB_LEVEL_MAX
                                    : CODEC_ZSTD_LEVEL_MAX;
}

enum idem_status
codec_check(const struct idem_compression *compression, struct idem_error *err)
{
    enum idem_codec codec = compression->codec;

    if (codec != IDEM_CODEC_NONE && codec != IDEM_CODEC_ZLIB &&
        codec != IDEM_CODEC_ZSTD)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "compression: there is no codec %d", (int)codec);
    if (codec == IDEM_CODEC_NONE &&
        (compression->threshold != 0 || compression->level != 0))
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "compression: threshold and level need a codec");
    if (compression->level < 0 || compression->level > level_max(codec))
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "compression: level %d is not of 0 to %d",
                         compression->level, level_max(codec));
    return IDEM_OK;
}

/* Its size; 0: it does not fit. */
static size_t
squeeze_into(uint8_t *to, size_t room,
             const struct idem_compression *compression,
             struct idem_bytes message)
{
    if (compression->codec == IDEM_CODEC_ZLIB)
        return codec_zlib_squeeze(to, room, message, compression->level);
    return codec_zstd_squeeze(to, room, message, compression->level);
}

static void
write_head(uint8_t *to, enum idem_codec codec, size_t size)
{
    to[0] = (uint8_t)codec;
    for (unsigned i = 0; i < 4; i++)
        to[1 + i] = (uint8_t)(size >> 8 * i);
}

bool
codec_squeeze(struct idem_bytes *squeezed,
              const struct idem_compression *compression,
              struct idem_bytes message, struct idem_arena *arena)
{
    size_t threshold =
        compression->threshold ? compression->threshold : THRESHOLD;
    uint8_t *room;
    size_t size;

    if (message.size < threshold || message.size <= HEAD ||
        message.size > UINT32_MAX)
        return false;
    room = malloc(message.size);
    if (!room)
        return false;
    write_head(room, compression->codec, message.size);
    size = squeeze_into(room + HEAD, message.size - HEAD, compression, message);
    squeezed->size = HEAD + size;
    squeezed->data = NULL;
    if (size > 0 && squeezed->size < message.size)
        squeezed->data =
            idem_arena_copy(arena, (struct idem_bytes){room, squeezed->size});
    free(room);
    return squeezed->data != NULL;
}

static bool
open_into(uint8_t *to, size_t size, enum idem_codec codec,
          struct idem_bytes from)
{
    if (codec == IDEM_CODEC_ZLIB)
        return codec_zlib_open(to, size, from);
    return codec_zstd_open(to, size, from);
}

enum codec_opened
codec_open(struct idem_bytes *message, struct idem_bytes squeezed, size_t limit,
           struct idem_arena *arena)
{
    const uint8_t *at = squeezed.data;
    enum idem_codec codec;
    uint8_t *to;

    if (squeezed.size < HEAD ||
        (at[0] != IDEM_CODEC_ZLIB && at[0] != IDEM_CODEC_ZSTD))
        return CODEC_BROKEN;
    codec = (enum idem_codec)at[0];
    *message = (struct idem_bytes){NULL, at[1] | (size_t)at[2] << 8 |
                                             (size_t)at[3] << 16 |
                                             (size_t)at[4] << 24};
    if (message->size > limit)
        return CODEC_OVERSIZE;
    to = idem_arena_alloc(arena, message->size + 1);
    if (!to)
        return CODEC_NO_MEMORY;
    message->data = to;
    return open_into(to, message->size, codec,
                     (struct idem_bytes){at + HEAD, squeezed.size - HEAD})
               ? CODEC_OPENED
               : CODEC_BROKEN;
}
