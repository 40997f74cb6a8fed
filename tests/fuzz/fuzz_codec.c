#include "fuzz.h"

#include "codec.h"

/* A compressed message of a peer: it is opened to just the size that it says,
 * within the limit, or it is not. What is opened can be compressed and opened
 * again. */

#define LIMIT 65536

static void
check_round(struct idem_bytes message, struct idem_arena *arena)
{
    static const enum idem_codec codecs[] = {IDEM_CODEC_ZLIB, IDEM_CODEC_ZSTD};

    for (unsigned i = 0; i < 2; i++) {
        const struct idem_compression how = {
            .codec = codecs[i], .threshold = 1, .level = 1};
        struct idem_bytes squeezed, back;

        if (!codec_squeeze(&squeezed, &how, message, arena))
            continue;
        IDEM_ASSERT(squeezed.size < message.size);
        IDEM_ASSERT(codec_open(&back, squeezed, message.size, arena) ==
                    CODEC_OPENED);
        IDEM_ASSERT(idem_bytes_equal(back, message));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size}, message = {0};
    struct idem_arena *arena = idem_arena_new();

    IDEM_ASSERT(arena);
    switch (codec_open(&message, input, LIMIT, arena)) {
    case CODEC_OPENED:
        IDEM_ASSERT(message.size <= LIMIT);
        check_round(message, arena);
        break;
    case CODEC_OVERSIZE:
        IDEM_ASSERT(message.size > LIMIT);
        break;
    case CODEC_BROKEN:
    case CODEC_NO_MEMORY:
        break;
    }
    idem_arena_free(arena);
    return 0;
}
