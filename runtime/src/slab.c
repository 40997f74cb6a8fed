#include "slab.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* Blocks are of a few sizes. Of each, a thread has a stack of its own; when it
 * is empty, or holds two bundles, a bundle comes from or goes to the depot that
 * all share. Under ASan everything is malloc's, so that it sees each block
 * die. */

enum { TINY, SMALL, LARGE, CLASSES };

static const struct class
{
    size_t size;      /* bytes */
    unsigned bundle;  /* blocks */
    unsigned bundles; /* that the depot keeps */
} classes[CLASSES] = {
    [TINY] = {SLAB_SIZE_MIN, 64, 64}, /* 7 MiB */
    [SMALL] = {4096, 32, 64},         /* 8 MiB */
    [LARGE] = {SLAB_SIZE_MAX, 8, 64}, /* 8 MiB */
};

struct block {
    struct block *next;   /* in a stack or bundle */
    struct block *bundle; /* of a bundle's first: the next bundle */
};

struct stack {
    struct block *top;
    unsigned n;
};

struct stacks {
    struct stack of[CLASSES];
    bool known; /* they are emptied when the thread ends */
};

static _Thread_local struct stacks mine;

static struct depot {
    pthread_mutex_t lock;
    struct block *bundles;
    unsigned n;
} depots[CLASSES] = {
    [TINY] = {PTHREAD_MUTEX_INITIALIZER, NULL, 0},
    [SMALL] = {PTHREAD_MUTEX_INITIALIZER, NULL, 0},
    [LARGE] = {PTHREAD_MUTEX_INITIALIZER, NULL, 0},
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end;

static void
free_blocks(struct block *block)
{
    while (block) {
        struct block *next = block->next;

        free(block);
        block = next;
    }
}

static void
empty(void *with)
{
    struct stacks *stacks = with;

    for (int i = 0; i < CLASSES; i++)
        free_blocks(stacks->of[i].top);
    *stacks = (struct stacks){0};
}

static void
make_key(void)
{
    (void)pthread_key_create(&at_end, empty);
}

static void
know_thread(void)
{
    if (mine.known)
        return;
    pthread_once(&once, make_key);
    mine.known = pthread_setspecific(at_end, &mine) == 0;
}

static void
fetch_bundle(int class)
{
    struct depot *depot = &depots[class];
    struct block *bundle;

    know_thread();
    pthread_mutex_lock(&depot->lock);
    bundle = depot->bundles;
    if (bundle) {
        depot->bundles = bundle->bundle;
        depot->n--;
    }
    pthread_mutex_unlock(&depot->lock);
    mine.of[class].top = bundle;
    mine.of[class].n = bundle ? classes[class].bundle : 0;
}

/* The upper half of a full stack. */
static void
bring_bundle(int class)
{
    struct depot *depot = &depots[class];
    struct stack *stack = &mine.of[class];
    struct block *bundle = stack->top, *last = bundle;

    for (unsigned i = 1; i < classes[class].bundle; i++)
        last = last->next;
    stack->top = last->next;
    stack->n -= classes[class].bundle;
    last->next = NULL;
    pthread_mutex_lock(&depot->lock);
    if (depot->n < classes[class].bundles) {
        bundle->bundle = depot->bundles;
        depot->bundles = bundle;
        depot->n++;
        bundle = NULL;
    }
    pthread_mutex_unlock(&depot->lock);
    free_blocks(bundle);
}

#ifndef __has_feature /* clang's */
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SLABS_ARE_KEPT 0
#else
#define SLABS_ARE_KEPT 1
#endif

static int
class_of(size_t size)
{
    if (size <= classes[TINY].size)
        return TINY;
    return size <= classes[SMALL].size ? SMALL : LARGE;
}

void *
slab_take(size_t size)
{
    struct stack *stack;
    struct block *block;
    int class = class_of(size);

    if (!SLABS_ARE_KEPT || size > SLAB_SIZE_MAX)
        return malloc(size);
    stack = &mine.of[class];
    if (!stack->top)
        fetch_bundle(class);
    block = stack->top;
    if (!block)
        return malloc(classes[class].size);
    stack->top = block->next;
    stack->n--;
    return block;
}

void
slab_give(void *memory, size_t size)
{
    struct stack *stack;
    struct block *block = memory;
    int class = class_of(size);

    if (!SLABS_ARE_KEPT || size > SLAB_SIZE_MAX || !block) {
        free(memory);
        return;
    }
    know_thread();
    stack = &mine.of[class];
    block->next = stack->top;
    stack->top = block;
    if (++stack->n >= 2 * classes[class].bundle)
        bring_bundle(class);
}
