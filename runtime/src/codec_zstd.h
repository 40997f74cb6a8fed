#ifndef CODEC_ZSTD_H
#define CODEC_ZSTD_H

#include <idem/base.h>

/* zstd, which no other file includes. */

#define CODEC_ZSTD_LEVEL_MAX 19

/* level 0: its default. Its size; 0: it does not fit, or memory is out. */
size_t codec_zstd_squeeze(uint8_t *to, size_t room, struct idem_bytes from,
                          int level);

/* True: from, all of it, was just that many bytes. */
bool codec_zstd_open(uint8_t *to, size_t size, struct idem_bytes from);

#endif
