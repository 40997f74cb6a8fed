#ifndef CODEC_ZLIB_H
#define CODEC_ZLIB_H

#include <idem/base.h>

/* zlib, which no other file includes. */

#define CODEC_ZLIB_LEVEL_MAX 9

/* level 0: its default. Its size; 0: it does not fit, or memory is out. */
size_t codec_zlib_squeeze(uint8_t *to, size_t room, struct idem_bytes from,
                          int level);

/* True: from, all of it, was just that many bytes. */
bool codec_zlib_open(uint8_t *to, size_t size, struct idem_bytes from);

#endif
