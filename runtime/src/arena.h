#ifndef ARENA_H
#define ARENA_H

#include <idem/arena.h>

/* A slab that grows by further ones. The first slab is part of the arena's own
 * allocation, so that a small call costs one malloc. limit 0: none. NULL: out
 * of memory. */
struct idem_arena *arena_new(size_t first, size_t limit);

/* Bytes of the first slab that are the arena's own. */
#define ARENA_HEAD 64
void arena_free(struct idem_arena *arena);

/* All that was taken is free again; the first slab stays. */
void arena_reset(struct idem_arena *arena);

/* Bytes taken from the system, for tests and limits. */
size_t arena_size(const struct idem_arena *arena);

#endif
