#ifndef IDEM_BASE_H
#define IDEM_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What every public header stands on: attributes, assertions, byte views. */

#ifdef __cplusplus
#define IDEM_BEGIN_DECLS extern "C" {
#define IDEM_END_DECLS }
#else
#define IDEM_BEGIN_DECLS
#define IDEM_END_DECLS
#endif

#define IDEM_API __attribute__((visibility("default")))
#define IDEM_MUST_CHECK __attribute__((warn_unused_result))
#define IDEM_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* An owning local that frees itself: `IDEM_AUTO(thing_auto) struct thing *t`.
 * For memory only; effects (commit, send) are plain statements. */
#define IDEM_AUTO(fini) __attribute__((cleanup(fini)))

/* What the programmer promised; kept in release. Never for bytes from outside,
 * and without side effects. */
#define IDEM_ASSERT(promise)                                                   \
    ((promise) ? (void)0 : idem_assert_failed(#promise, __FILE__, __LINE__))

IDEM_BEGIN_DECLS

/* A view of bytes that somebody else owns. data may be NULL when size is 0. */
struct idem_bytes {
    const uint8_t *data;
    size_t size; /* bytes */
};

/* Print the broken promise to stderr and abort. */
IDEM_API void idem_assert_failed(const char *promise, const char *file,
                                 int line) __attribute__((noreturn));

/* A view of a C string, without its NUL. NULL gives an empty view. */
IDEM_API struct idem_bytes idem_bytes_of(const char *text);

IDEM_API bool idem_bytes_equal(struct idem_bytes a, struct idem_bytes b);

IDEM_END_DECLS

#endif
