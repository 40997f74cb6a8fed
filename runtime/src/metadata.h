#ifndef METADATA_H
#define METADATA_H

#include <idem/metadata.h>

#define METADATA_RESERVED "idem-" /* what such names begin with */

bool metadata_is_reserved(struct idem_bytes name);

bool metadata_has_reserved(const struct idem_metadata *metadata);

/* Take the reserved ones out. */
void metadata_drop_reserved(struct idem_metadata *metadata);

#endif
