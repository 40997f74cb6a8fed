#ifndef LAY_BYTES_H
#define LAY_BYTES_H

#include <idem/base.h>

#include <string.h>

/* A copy at *at, which moves behind it: texts that share one block, which its
 * owner has made large enough. */
static inline struct idem_bytes
lay_bytes(uint8_t **at, struct idem_bytes bytes)
{
    struct idem_bytes copy = {*at, bytes.size};

    if (bytes.size > 0)
        memcpy(*at, bytes.data, bytes.size);
    *at += bytes.size;
    return copy;
}

#endif
