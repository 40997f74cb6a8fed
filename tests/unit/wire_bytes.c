#include "wire_bytes.h"

#include <string.h>

struct idem_bytes
wire_view(const struct wire_bytes *w)
{
    return (struct idem_bytes){w->data, w->size};
}

void
wire_raw(struct wire_bytes *w, const void *bytes, size_t size)
{
    IDEM_ASSERT(size <= sizeof(w->data) - w->size);
    if (size > 0)
        memcpy(w->data + w->size, bytes, size);
    w->size += size;
}

void
wire_varint(struct wire_bytes *w, uint64_t value)
{
    uint8_t byte;

    do {
        byte = value & 0x7F;
        value >>= 7;
        byte |= value ? 0x80 : 0;
        wire_raw(w, &byte, 1);
    } while (value);
}

static void
tag(struct wire_bytes *w, unsigned field, unsigned type)
{
    wire_varint(w, (uint64_t)field << 3 | type);
}

void
wire_number(struct wire_bytes *w, unsigned field, uint64_t value)
{
    tag(w, field, 0);
    wire_varint(w, value);
}

void
wire_fixed32(struct wire_bytes *w, unsigned field, uint32_t value)
{
    tag(w, field, 5);
    wire_raw(w, &value, sizeof(value));
}

void
wire_fixed64(struct wire_bytes *w, unsigned field, uint64_t value)
{
    tag(w, field, 1);
    wire_raw(w, &value, sizeof(value));
}

void
wire_sized(struct wire_bytes *w, unsigned field, const void *bytes, size_t size)
{
    tag(w, field, 2);
    wire_varint(w, size);
    wire_raw(w, bytes, size);
}

void
wire_text(struct wire_bytes *w, unsigned field, const char *text)
{
    wire_sized(w, field, text, strlen(text));
}

void
wire_nested(struct wire_bytes *w, unsigned field,
            const struct wire_bytes *inner)
{
    wire_sized(w, field, inner->data, inner->size);
}

void
wire_deep(struct wire_bytes *w, unsigned field, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++) {
        struct wire_bytes inner = *w;

        w->size = 0;
        wire_nested(w, field, &inner);
    }
}
