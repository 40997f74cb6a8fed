#ifndef WIRE_BYTES_H
#define WIRE_BYTES_H

#include <idem/base.h>

/* Wire bytes written by hand, in any order and form that a protobuf writer of
 * another language might choose. */
struct wire_bytes {
    uint8_t data[8192];
    size_t size;
};

struct idem_bytes wire_view(const struct wire_bytes *w);
void wire_varint(struct wire_bytes *w, uint64_t value);
void wire_raw(struct wire_bytes *w, const void *bytes, size_t size);

/* A field with its tag. */
void wire_number(struct wire_bytes *w, unsigned field, uint64_t value);
void wire_fixed32(struct wire_bytes *w, unsigned field, uint32_t value);
void wire_fixed64(struct wire_bytes *w, unsigned field, uint64_t value);
void wire_text(struct wire_bytes *w, unsigned field, const char *text);
void wire_sized(struct wire_bytes *w, unsigned field, const void *bytes,
                size_t size);
void wire_nested(struct wire_bytes *w, unsigned field,
                 const struct wire_bytes *inner);

/* The field inside itself so many times: depth messages inside messages. */
void wire_deep(struct wire_bytes *w, unsigned field, unsigned depth);

#endif
