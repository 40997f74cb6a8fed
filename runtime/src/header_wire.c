#include "header_wire.h"

#include <string.h>

#define VARINT_MAX 10 /* bytes of a 64-bit varint */
#define TAG_MAX 5

static uint8_t *
put_raw(uint8_t *at, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *
put_tag(uint8_t *at, uint32_t number, enum header_type type)
{
    return put_raw(at, (uint64_t)number << 3 | (unsigned)type);
}

static uint8_t *
put_value(uint8_t *at, uint32_t number, struct idem_bytes value)
{
    at = put_tag(at, number, HEADER_BYTES);
    at = put_raw(at, value.size);
    memcpy(at, value.data, value.size);
    return at + value.size;
}

static size_t
varint_size(uint64_t value)
{
    size_t size = 1;

    while (value >>= 7)
        size++;
    return size;
}

/* The exact size is asked where the room is tight. */
static void
must_have_room(const struct header_writer *writer, uint32_t number,
               uint64_t varint, size_t beside)
{
    size_t room = (size_t)(writer->end - writer->at);

    IDEM_ASSERT(room >= TAG_MAX + VARINT_MAX + beside ||
                room >= varint_size((uint64_t)number << 3) +
                            varint_size(varint) + beside);
}

void
header_put_present(struct header_writer *writer, uint32_t number,
                   uint64_t value)
{
    must_have_room(writer, number, value, 0);
    writer->at = put_raw(put_tag(writer->at, number, HEADER_VARINT), value);
}

void
header_put_some(struct header_writer *writer, uint32_t number,
                struct idem_bytes value)
{
    must_have_room(writer, number, value.size, value.size);
    writer->at = put_value(writer->at, number, value);
}

static size_t
entry_size(const struct idem_metadata_entry *entry)
{
    size_t name = entry->name.size, value = entry->value.size;

    return 1 + varint_size(name) + name +
           (value > 0 ? 1 + varint_size(value) + value : 0);
}

void
header_put_metadata(struct header_writer *writer, uint32_t number,
                    const struct idem_metadata *metadata)
{
    const struct idem_metadata_entry *entry = metadata ? metadata->first : NULL;

    for (; entry; entry = entry->next) {
        size_t size = entry_size(entry);
        uint8_t *at = writer->at;

        must_have_room(writer, number, size, size);
        at = put_raw(put_tag(at, number, HEADER_BYTES), size);
        at = put_value(at, 1, entry->name);
        writer->at =
            entry->value.size > 0 ? put_value(at, 2, entry->value) : at;
    }
}

/* Behind the varint; NULL: cut, or over 64 bits. */
static const uint8_t *
get_long_varint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t sum = 0;

    for (unsigned shift = 0; at < end; shift += 7) {
        uint8_t byte = *at++;

        if (shift == 7 * (VARINT_MAX - 1) && byte > 1)
            return NULL;
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = sum;
            return at;
        }
    }
    return NULL;
}

static inline const uint8_t *
get_varint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    if (at == end || *at >= 0x80)
        return get_long_varint(at, end, value);
    *value = *at;
    return at + 1;
}

static inline const uint8_t *
get_bytes(const uint8_t *at, const uint8_t *end, uint64_t size,
          struct idem_bytes *bytes)
{
    if (size > (size_t)(end - at))
        return NULL;
    *bytes = (struct idem_bytes){at, (size_t)size};
    return at + size;
}

static const uint8_t *
get_value(const uint8_t *at, const uint8_t *end, struct header_field *field)
{
    uint64_t size;

    switch (field->type) {
    case HEADER_VARINT:
        return get_varint(at, end, &field->varint);
    case HEADER_FIXED64:
        return get_bytes(at, end, 8, &field->bytes);
    case HEADER_FIXED32:
        return get_bytes(at, end, 4, &field->bytes);
    case HEADER_BYTES:
        at = get_varint(at, end, &size);
        return at ? get_bytes(at, end, size, &field->bytes) : NULL;
    }
    return NULL;
}

int
header_next_field(struct header_reader *reader, struct header_field *field)
{
    const uint8_t *at = reader->at;
    uint64_t tag;

    if (at == reader->end)
        return 0;
    at = get_varint(at, reader->end, &tag);
    if (!at || tag >> 3 == 0 || tag > UINT32_MAX)
        return -1;
    field->number = (uint32_t)(tag >> 3);
    field->type = (enum header_type)(tag & 7);
    at = get_value(at, reader->end, field);
    if (!at)
        return -1;
    reader->at = at;
    return 1;
}

void
header_note_entry(struct idem_bytes *entries, const uint8_t *from,
                  const struct header_reader *reader)
{
    if (!entries->data)
        entries->data = from;
    entries->size = (size_t)(reader->at - entries->data);
}

/* The form that most entries have: a name, a value, each with a length of one
 * byte. False: another one. */
static bool
read_short_entry(struct idem_bytes bytes, struct idem_bytes *name,
                 struct idem_bytes *value)
{
    const uint8_t *at = bytes.data;
    size_t size;

    if (bytes.size < 4 || at[0] != (1 << 3 | HEADER_BYTES) || at[1] >= 0x80)
        return false;
    size = at[1];
    if (bytes.size < 4 + size || at[2 + size] != (2 << 3 | HEADER_BYTES) ||
        at[3 + size] >= 0x80 || bytes.size != 4 + size + at[3 + size])
        return false;
    *name = (struct idem_bytes){at + 2, size};
    *value = (struct idem_bytes){at + 4 + size, at[3 + size]};
    return true;
}

static enum idem_status
read_entry(struct idem_bytes bytes, struct idem_metadata *metadata,
           struct idem_arena *arena, struct idem_error *err)
{
    struct header_reader reader = header_reader_of(bytes);
    struct idem_bytes name = {0}, value = {0};
    struct header_field field;
    int more;

    if (read_short_entry(bytes, &name, &value))
        return idem_metadata_add(metadata, arena, name, value, err);
    while ((more = header_next_field(&reader, &field)) > 0) {
        if (field.number == 1 && field.type == HEADER_BYTES)
            name = field.bytes;
        else if (field.number == 2 && field.type == HEADER_BYTES)
            value = field.bytes;
    }
    if (more < 0)
        return idem_fail(err, IDEM_INTERNAL, "broken metadata entry");
    return idem_metadata_add(metadata, arena, name, value, err);
}

enum idem_status
header_read_metadata(struct idem_bytes bytes, uint32_t number,
                     struct idem_metadata *metadata, struct idem_arena *arena,
                     struct idem_error *err)
{
    struct header_reader reader = header_reader_of(bytes);
    struct header_field field;

    while (header_next_field(&reader, &field) > 0) {
        enum idem_status status;

        if (field.number != number || field.type != HEADER_BYTES)
            continue;
        status = read_entry(field.bytes, metadata, arena, err);
        if (status != IDEM_OK)
            return status;
    }
    return IDEM_OK;
}
