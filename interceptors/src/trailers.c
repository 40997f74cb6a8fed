#include "trailers.h"

#include <string.h>

/* Tags of wire.proto: number << 3 | 2, all length-delimited. */
enum {
    TAG_TRAILER = 9 << 3 | 2,
    TAG_NAME = 1 << 3 | 2,
    TAG_VALUE = 2 << 3 | 2,
};

static size_t
varint_size(size_t value)
{
    size_t size = 1;

    for (; value > 0x7f; value >>= 7)
        size++;
    return size;
}

static uint8_t *
put_varint(uint8_t *at, size_t value)
{
    for (; value > 0x7f; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static bool
take_varint(struct idem_bytes *from, size_t *value)
{
    unsigned shift = 0;

    for (*value = 0; from->size > 0 && shift < 35; shift += 7) {
        uint8_t byte = *from->data++;

        from->size--;
        *value |= (size_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static size_t
field_size(size_t size)
{
    return 1 + varint_size(size) + size;
}

static uint8_t *
put_field(uint8_t *at, uint8_t tag, struct idem_bytes bytes)
{
    *at++ = tag;
    at = put_varint(at, bytes.size);
    if (bytes.size > 0)
        memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

static bool
take_field(struct idem_bytes *from, uint8_t tag, struct idem_bytes *bytes)
{
    if (from->size == 0 || *from->data != tag)
        return false;
    from->data++;
    from->size--;
    if (!take_varint(from, &bytes->size) || bytes->size > from->size)
        return false;
    bytes->data = from->data;
    from->data += bytes->size;
    from->size -= bytes->size;
    return true;
}

static size_t
entry_size(const struct idem_metadata_entry *entry)
{
    return field_size(entry->name.size) + field_size(entry->value.size);
}

bool
trailers_encode(const struct idem_metadata *trailers, struct idem_arena *arena,
                struct idem_bytes *bytes)
{
    const struct idem_metadata_entry *entry;
    uint8_t *at;

    *bytes = (struct idem_bytes){NULL, 0};
    for (entry = trailers->first; entry; entry = entry->next)
        bytes->size += field_size(entry_size(entry));
    if (bytes->size == 0)
        return true;
    bytes->data = at = idem_arena_alloc(arena, bytes->size);
    if (!at)
        return false;
    for (entry = trailers->first; entry; entry = entry->next) {
        *at++ = TAG_TRAILER;
        at = put_varint(at, entry_size(entry));
        at = put_field(at, TAG_NAME, entry->name);
        at = put_field(at, TAG_VALUE, entry->value);
    }
    return true;
}

bool
trailers_decode(struct idem_bytes bytes, struct idem_arena *arena,
                struct idem_metadata *trailers)
{
    struct idem_bytes entry, name, value;

    *trailers = (struct idem_metadata){0};
    while (bytes.size > 0)
        if (!take_field(&bytes, TAG_TRAILER, &entry) ||
            !take_field(&entry, TAG_NAME, &name) ||
            !take_field(&entry, TAG_VALUE, &value) || entry.size > 0 ||
            idem_metadata_add(trailers, arena, name, value, NULL) != IDEM_OK)
            return false;
    return true;
}
