#ifndef IDEM_ARENA_H
#define IDEM_ARENA_H

#include <stdarg.h>

#include <idem/base.h>

struct idem_arena;

IDEM_BEGIN_DECLS

/* Memory that lives as long as one call. One thread at a time: whoever holds
 * the call. Nothing is freed singly. */

/* An arena of one's own, for who has no call. NULL: memory is out. */
IDEM_API struct idem_arena *idem_arena_new(void) IDEM_MUST_CHECK;

/* NULL is fine. */
IDEM_API void idem_arena_free(struct idem_arena *arena);

/* size bytes aligned for any type, not cleared. NULL when memory is out or the
 * arena's limit is reached. */
IDEM_API void *idem_arena_alloc(struct idem_arena *arena, size_t size)
    IDEM_MUST_CHECK;

/* As idem_arena_alloc, cleared. */
IDEM_API void *idem_arena_zalloc(struct idem_arena *arena, size_t size)
    IDEM_MUST_CHECK;

/* A copy with a NUL behind it that is not counted. NULL as above. */
IDEM_API uint8_t *idem_arena_copy(struct idem_arena *arena,
                                  struct idem_bytes bytes) IDEM_MUST_CHECK;

IDEM_API char *idem_arena_printf(struct idem_arena *arena, const char *format,
                                 ...) IDEM_PRINTF(2, 3) IDEM_MUST_CHECK;
IDEM_API char *idem_arena_vprintf(struct idem_arena *arena, const char *format,
                                  va_list args) IDEM_PRINTF(2, 0)
    IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
