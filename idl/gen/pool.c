#include "pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pool_block {
    struct pool_block *next;
    max_align_t data[];
};

static void *
take(void *pool, size_t size)
{
    return pool_alloc(pool, size);
}

static void
leave(void *pool, void *data)
{
    (void)pool;
    (void)data;
}

void
pool_init(struct pool *pool)
{
    *pool = (struct pool){
        .allocator = {.alloc = take, .free = leave, .allocator_data = pool}};
}

void
pool_fini(struct pool *pool)
{
    while (pool->blocks) {
        struct pool_block *block = pool->blocks;

        pool->blocks = block->next;
        free(block);
    }
}

void *
pool_alloc(struct pool *pool, size_t size)
{
    struct pool_block *block = calloc(1, sizeof(*block) + size);

    if (!block) {
        fputs("protoc-gen-idem: out of memory\n", stderr);
        exit(1);
    }
    block->next = pool->blocks;
    pool->blocks = block;
    return block->data;
}

void *
pool_grow(struct pool *pool, const void *old, size_t used, size_t size)
{
    void *grown = pool_alloc(pool, size);

    if (used)
        memcpy(grown, old, used);
    return grown;
}

char *
pool_printf(struct pool *pool, const char *format, ...)
{
    char *text;
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = pool_alloc(pool, (size_t)size + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)size + 1, format, args);
    va_end(args);
    return text;
}
