#ifndef IDEM_METADATA_H
#define IDEM_METADATA_H

#include <idem/arena.h>
#include <idem/status.h>

/* Bytes of all names and values, and 32 for each entry. */
#define IDEM_METADATA_MAX 8192

IDEM_BEGIN_DECLS

/* An ordered multi-map: names of [0-9a-z_.-], values of printable ASCII, any
 * bytes when the name ends in "-bin" (gRPC's rules). Names that begin with
 * "idem-" are reserved. Empty when zeroed. The entries live in the arena that
 * was given to idem_metadata_add. */
struct idem_metadata {
    struct idem_metadata_entry *first, **last;
    size_t size; /* bytes as counted by IDEM_METADATA_MAX */
};

struct idem_metadata_entry {
    struct idem_metadata_entry *next;
    struct idem_bytes name;
    struct idem_bytes value;
};

/**
 * Append an entry; both views are copied into the arena.
 *
 * @retval IDEM_OK
 * @retval IDEM_INTERNAL            the name or the value breaks the rules above
 * @retval IDEM_RESOURCE_EXHAUSTED  IDEM_METADATA_MAX, or memory
 */
IDEM_API enum idem_status
idem_metadata_add(struct idem_metadata *metadata, struct idem_arena *arena,
                  struct idem_bytes name, struct idem_bytes value,
                  struct idem_error *err) IDEM_MUST_CHECK;

/* Take the entries out whose name drops() says yes to. The metadata is the
 * caller's alone. */
IDEM_API void idem_metadata_drop(struct idem_metadata *metadata,
                                 bool (*drops)(struct idem_bytes name));

/* The first value of exactly this name; false when there is none. */
IDEM_API bool idem_metadata_get(const struct idem_metadata *metadata,
                                const char *name, struct idem_bytes *value);

IDEM_END_DECLS

#endif
