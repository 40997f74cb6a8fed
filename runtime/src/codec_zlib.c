#include "codec_zlib.h"

#include <zlib.h>

size_t
codec_zlib_squeeze(uint8_t *to, size_t room, struct idem_bytes from, int level)
{
    uLongf size = room;

    return compress2(to, &size, from.data, from.size,
                     level ? level : Z_DEFAULT_COMPRESSION) == Z_OK
               ? size
               : 0;
}

bool
codec_zlib_open(uint8_t *to, size_t size, struct idem_bytes from)
{
    uLongf made = size;
    uLong used = from.size;

    return uncompress2(to, &made, from.data, &used) == Z_OK && made == size &&
           used == from.size;
}
