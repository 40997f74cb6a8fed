#ifndef SLAB_H
#define SLAB_H

#include <stddef.h>

/* Blocks of memory for things that live as long as a call, kept for the next
 * call: one thread takes them and another gives them back, which malloc answers
 * by returning memory to the system and asking for it again, a fifth of the
 * time of an echo. From any thread. */

#define SLAB_SIZE_MIN 1888  /* bytes: a client's call in flight */
#define SLAB_SIZE_MAX 16384 /* bytes */

/* At least size bytes; over SLAB_SIZE_MAX it is malloc's. NULL: out of memory.
 */
void *slab_take(size_t size);

/* size as it was taken; block may be NULL. */
void slab_give(void *block, size_t size);

#endif
