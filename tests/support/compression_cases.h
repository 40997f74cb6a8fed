#ifndef COMPRESSION_CASES_H
#define COMPRESSION_CASES_H

#include "codec.h"

/* What an end whose codec is zstd sends to one that can open these: compressed,
 * unless the call wants it plain. */
static const struct compression_case {
    uint32_t codecs;
    bool plain, compressed;
} compression_cases[] = {
    {CODECS, false, true}, {CODEC_BIT(IDEM_CODEC_ZSTD), false, true},
    {CODECS, true, false}, {CODEC_BIT(IDEM_CODEC_ZLIB), false, false},
    {0, false, false},
};

#define COMPRESSION_CASES (sizeof compression_cases / sizeof *compression_cases)

#endif
