#ifndef POOL_H
#define POOL_H

#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

/* Memory of one run: everything that the generator makes lives until pool_fini.
 * Out of memory ends the program with a message. One thread. */
struct pool {
    ProtobufCAllocator allocator; /* for protobuf-c; its free does nothing */
    struct pool_block *blocks;
};

void pool_init(struct pool *pool);
void pool_fini(struct pool *pool);

/* Cleared, aligned for any type. */
void *pool_alloc(struct pool *pool, size_t size);

/* The first used bytes of old in a piece of size bytes; the rest is cleared. */
void *pool_grow(struct pool *pool, const void *old, size_t used, size_t size);

char *pool_printf(struct pool *pool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
