#include "slab.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* Each thread has a stack of blocks of its own. When it is empty, or holds two
 * bundles, a bundle comes from or goes to the depot that all share. Under ASan
 * everything is malloc's, so that it sees each block die. */

#define BUNDLE 32  /* blocks */
#define BUNDLES 64 /* that the depot keeps, 8 MiB */

struct block {
    struct block *next;   /* in a stack or bundle */
    struct block *bundle; /* of a bundle's first: the next bundle */
};

struct stack {
    struct block *top;
    unsigned n;
    bool known; /* it is emptied when the thread ends */
};

static _Thread_local struct stack mine;

static struct {
    pthread_mutex_t lock;
    struct block *bundles;
    unsigned n;
} depot = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};

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
empty(void *stack)
{
    free_blocks(((struct stack *)stack)->top);
    *(struct stack *)stack = (struct stack){0};
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
fetch_bundle(void)
{
    struct block *bundle;

    know_thread();
    pthread_mutex_lock(&depot.lock);
    bundle = depot.bundles;
    if (bundle) {
        depot.bundles = bundle->bundle;
        depot.n--;
    }
    pthread_mutex_unlock(&depot.lock);
    mine.top = bundle;
    mine.n = bundle ? BUNDLE : 0;
}

/* The upper half of a full stack. */
static void
bring_bundle(void)
{
    struct block *bundle = mine.top, *last = bundle;

    for (unsigned i = 1; i < BUNDLE; i++)
        last = last->next;
    mine.top = last->next;
    mine.n -= BUNDLE;
    last->next = NULL;
    pthread_mutex_lock(&depot.lock);
    if (depot.n < BUNDLES) {
        bundle->bundle = depot.bundles;
        depot.bundles = bundle;
        depot.n++;
        bundle = NULL;
    }
    pthread_mutex_unlock(&depot.lock);
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

void *
slab_take(size_t size)
{
    struct block *block;

    if (!SLABS_ARE_KEPT || size > SLAB_SIZE)
        return malloc(size);
    if (!mine.top)
        fetch_bundle();
    block = mine.top;
    if (!block)
        return malloc(SLAB_SIZE);
    mine.top = block->next;
    mine.n--;
    return block;
}

void
slab_give(void *memory, size_t size)
{
    struct block *block = memory;

    if (!SLABS_ARE_KEPT || size > SLAB_SIZE || !block) {
        free(memory);
        return;
    }
    know_thread();
    block->next = mine.top;
    mine.top = block;
    if (++mine.n >= 2 * BUNDLE)
        bring_bundle();
}
