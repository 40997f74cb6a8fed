#include "arena.h"

#include "slab.h"

#include <stdio.h>
#include <string.h>

#define ALIGN _Alignof(max_align_t)
#define SLAB_MAX 65536 /* slabs double up to here */
#define OWN_SLAB 1024  /* of an arena without a call */

struct slab {
    struct slab *next;
    size_t whole; /* bytes, this struct included */
    max_align_t bytes[];
};

struct idem_arena {
    uint8_t *at, *end; /* what is free in the newest slab */
    size_t whole;      /* bytes of the first slab, this struct included */
    size_t limit;      /* 0: none */
    size_t taken;      /* bytes from the system */
    size_t slab_size;  /* of the next one */
    struct slab *slabs;
    max_align_t first[];
};

_Static_assert(sizeof(struct idem_arena) == ARENA_HEAD, "arena.h says so");

static size_t
aligned(size_t size)
{
    return (size + ALIGN - 1) & ~(ALIGN - 1);
}

static bool
grow(struct idem_arena *arena, size_t size)
{
    size_t room = size > arena->slab_size ? size : arena->slab_size;
    size_t whole = sizeof(struct slab) + room;

    if (arena->limit && whole > arena->limit - arena->taken)
        whole = sizeof(struct slab) + size; /* the last one may fit exactly */
    if (arena->limit && whole > arena->limit - arena->taken)
        return false;

    struct slab *slab = slab_take(whole);

    if (!slab)
        return false;
    slab->next = arena->slabs;
    slab->whole = whole;
    arena->slabs = slab;
    arena->taken += whole;
    arena->at = (uint8_t *)slab->bytes;
    arena->end = (uint8_t *)slab + whole;
    if (arena->slab_size < SLAB_MAX)
        arena->slab_size *= 2;
    return true;
}

struct idem_arena *
arena_new(size_t first, size_t limit)
{
    size_t room = aligned(first ? first : ALIGN);
    size_t whole = sizeof(struct idem_arena) + room;

    /* The first slab is there whatever the limit, so that what is left of the
     * limit never goes below zero. */
    if (limit && limit < whole)
        limit = whole;

    struct idem_arena *arena = slab_take(whole);

    if (!arena)
        return NULL;
    *arena = (struct idem_arena){
        .at = (uint8_t *)arena->first,
        .end = (uint8_t *)arena + whole,
        .whole = whole,
        .limit = limit,
        .taken = whole,
        .slab_size = room < SLAB_MAX ? room : SLAB_MAX,
    };
    return arena;
}

static void
give_slabs(struct idem_arena *arena)
{
    while (arena->slabs) {
        struct slab *next = arena->slabs->next;

        slab_give(arena->slabs, arena->slabs->whole);
        arena->slabs = next;
    }
}

void
arena_free(struct idem_arena *arena)
{
    if (!arena)
        return;
    give_slabs(arena);
    slab_give(arena, arena->whole);
}

void
arena_reset(struct idem_arena *arena)
{
    if (arena->slabs)
        give_slabs(arena);
    arena->at = (uint8_t *)arena->first;
    arena->end = (uint8_t *)arena + arena->whole;
    arena->taken = arena->whole;
}

struct idem_arena *
idem_arena_new(void)
{
    return arena_new(OWN_SLAB, 0);
}

void
idem_arena_free(struct idem_arena *arena)
{
    arena_free(arena);
}

size_t
arena_size(const struct idem_arena *arena)
{
    return arena->taken;
}

/* Nothing, too much, or more than the slab has left. */
static __attribute__((noinline)) void *
alloc_odd(struct idem_arena *arena, size_t size)
{
    size_t room = aligned(size ? size : 1);
    void *memory;

    if (size > SIZE_MAX / 2)
        return NULL;
    if (room > (size_t)(arena->end - arena->at) && !grow(arena, room))
        return NULL;
    memory = arena->at;
    arena->at += room;
    return memory;
}

void *
idem_arena_alloc(struct idem_arena *arena, size_t size)
{
    uint8_t *memory = arena->at;
    size_t room = aligned(size); /* 0 also when it is over SIZE_MAX */

    if (room == 0 || room > (size_t)(arena->end - memory))
        return alloc_odd(arena, size);
    arena->at = memory + room;
    return memory;
}

void *
idem_arena_zalloc(struct idem_arena *arena, size_t size)
{
    void *memory = idem_arena_alloc(arena, size);

    return memory ? memset(memory, 0, size) : NULL;
}

uint8_t *
idem_arena_copy(struct idem_arena *arena, struct idem_bytes bytes)
{
    uint8_t *copy = NULL;

    if (bytes.size < SIZE_MAX)
        copy = idem_arena_alloc(arena, bytes.size + 1);
    if (!copy)
        return NULL;
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size] = 0;
    return copy;
}

char *
idem_arena_vprintf(struct idem_arena *arena, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);

    int size = vsnprintf(NULL, 0, format, args);
    char *text = size < 0 ? NULL : idem_arena_alloc(arena, (size_t)size + 1);

    if (text)
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

char *
idem_arena_printf(struct idem_arena *arena, const char *format, ...)
{
    va_list args;

    va_start(args, format);

    char *text = idem_arena_vprintf(arena, format, args);

    va_end(args);
    return text;
}
