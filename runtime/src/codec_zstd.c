#include "codec_zstd.h"

#include <zstd.h>

#include <pthread.h>
#include <stdlib.h>

/* A thread's own: to make one costs more than a small message. */
struct contexts {
    ZSTD_CCtx *squeeze;
    ZSTD_DCtx *open;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
free_contexts(void *with)
{
    struct contexts *contexts = with;

    ZSTD_freeCCtx(contexts->squeeze);
    ZSTD_freeDCtx(contexts->open);
    free(contexts);
}

static void
make_key(void)
{
    IDEM_ASSERT(pthread_key_create(&key, free_contexts) == 0);
}

/* NULL: out of memory. */
static struct contexts *
mine(void)
{
    struct contexts *contexts;

    pthread_once(&once, make_key);
    contexts = pthread_getspecific(key);
    if (contexts)
        return contexts;
    contexts = calloc(1, sizeof *contexts);
    if (!contexts || pthread_setspecific(key, contexts) != 0) {
        free(contexts);
        return NULL;
    }
    return contexts;
}

size_t
codec_zstd_squeeze(uint8_t *to, size_t room, struct idem_bytes from, int level)
{
    struct contexts *contexts = mine();
    size_t size;

    if (contexts && !contexts->squeeze)
        contexts->squeeze = ZSTD_createCCtx();
    if (!contexts || !contexts->squeeze)
        return 0;
    size = ZSTD_compressCCtx(contexts->squeeze, to, room, from.data, from.size,
                             level ? level : ZSTD_CLEVEL_DEFAULT);
    return ZSTD_isError(size) ? 0 : size;
}

bool
codec_zstd_open(uint8_t *to, size_t size, struct idem_bytes from)
{
    struct contexts *contexts = mine();

    if (contexts && !contexts->open)
        contexts->open = ZSTD_createDCtx();
    return contexts && contexts->open &&
           ZSTD_decompressDCtx(contexts->open, to, size, from.data,
                               from.size) == size;
}
