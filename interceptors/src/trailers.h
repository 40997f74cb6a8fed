#ifndef TRAILERS_H
#define TRAILERS_H

#include <idem/metadata.h>

/* Trailers as they stand in EndHeader and in a record: field 9, one Entry each
 * (idl/idem/v1/wire.proto). */

/* false: out of memory. */
bool trailers_encode(const struct idem_metadata *trailers,
                     struct idem_arena *arena, struct idem_bytes *bytes)
    IDEM_MUST_CHECK;

/* false: out of memory, or not what trailers_encode wrote. */
bool trailers_decode(struct idem_bytes bytes, struct idem_arena *arena,
                     struct idem_metadata *trailers) IDEM_MUST_CHECK;

#endif
