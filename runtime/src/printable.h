#ifndef PRINTABLE_H
#define PRINTABLE_H

#include <stdint.h>
#include <string.h>

#include <idem/base.h>

/* Values of metadata are of 0x20..0x7E, keys of 0x21..0x7E (wire.md,
 * semantics.md 3.11). Each call has some of both, so that they are judged eight
 * bytes at a time. */

/* A byte of eight that is not of least..0x7E has its top bit here, or one
 * behind it has; none has when all are. least: 1 to 0x7E. */
static inline uint64_t
unprintable(uint64_t eight, uint8_t least)
{
    const uint64_t each = UINT64_C(0x0101010101010101);

    return (eight | (eight + each) | ~(eight + each * (0x80u - least))) &
           each * 0x80;
}

static inline bool
is_printable(struct idem_bytes text, uint8_t least)
{
    uint64_t eight, bad = 0;
    size_t i = 0;

    for (; text.size - i >= sizeof(eight); i += sizeof(eight)) {
        memcpy(&eight, text.data + i, sizeof(eight));
        bad |= unprintable(eight, least);
    }
    if (i < text.size) {
        memset(&eight, '~', sizeof(eight));
        memcpy(&eight, text.data + i, text.size - i);
        bad |= unprintable(eight, least);
    }
    return bad == 0;
}

#endif
