#include "metadata.h"

#include <string.h>

#define ENTRY_COST 32 /* as HTTP/2 counts a header (RFC 9113, 6.5.2) */

static bool
is_name_byte(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '.' || c == '-';
}

static bool
is_name(struct idem_bytes name)
{
    for (size_t i = 0; i < name.size; i++)
        if (!is_name_byte(name.data[i]))
            return false;
    return name.size > 0;
}

static bool
is_binary(struct idem_bytes name)
{
    return name.size >= 4 && memcmp(name.data + name.size - 4, "-bin", 4) == 0;
}

static bool
is_printable(struct idem_bytes value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < 0x20 || value.data[i] > 0x7E)
            return false;
    return true;
}

/* For the error's text: what is printable of a name, cut. */
static const char *
shown(char text[65], struct idem_bytes name)
{
    size_t size = name.size < 64 ? name.size : 64;

    for (size_t i = 0; i < size; i++)
        text[i] = (char)(is_printable((struct idem_bytes){name.data + i, 1})
                             ? name.data[i]
                             : '?');
    text[size] = 0;
    return text;
}

static enum idem_status
check(const struct idem_metadata *metadata, struct idem_bytes name,
      struct idem_bytes value, struct idem_error *err)
{
    char text[65];

    if (!is_name(name))
        return idem_fail(err, IDEM_INTERNAL,
                         "metadata name \"%s\" is not of [0-9a-z_.-]",
                         shown(text, name));
    if (!is_binary(name) && !is_printable(value))
        return idem_fail(err, IDEM_INTERNAL,
                         "metadata \"%s\": its value is not printable ASCII "
                         "and the name does not end in -bin",
                         shown(text, name));
    if (name.size > IDEM_METADATA_MAX || value.size > IDEM_METADATA_MAX ||
        metadata->size + name.size + value.size + ENTRY_COST >
            IDEM_METADATA_MAX)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "metadata \"%s\" of %zu bytes: %zu are taken of %d",
                         shown(text, name), name.size + value.size,
                         metadata->size, IDEM_METADATA_MAX);
    return IDEM_OK;
}

enum idem_status
idem_metadata_add(struct idem_metadata *metadata, struct idem_arena *arena,
                  struct idem_bytes name, struct idem_bytes value,
                  struct idem_error *err)
{
    enum idem_status status = check(metadata, name, value, err);

    if (status != IDEM_OK)
        return status;

    struct idem_metadata_entry *entry = idem_arena_alloc(arena, sizeof(*entry));
    const uint8_t *name_copy = idem_arena_copy(arena, name);
    const uint8_t *value_copy = idem_arena_copy(arena, value);

    if (!entry || !name_copy || !value_copy)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "no memory for metadata of %zu bytes",
                         name.size + value.size);
    *entry = (struct idem_metadata_entry){
        .name = {name_copy, name.size},
        .value = {value_copy, value.size},
    };
    if (!metadata->last)
        metadata->last = &metadata->first;
    *metadata->last = entry;
    metadata->last = &entry->next;
    metadata->size += name.size + value.size + ENTRY_COST;
    return IDEM_OK;
}

bool
idem_metadata_get(const struct idem_metadata *metadata, const char *name,
                  struct idem_bytes *value)
{
    struct idem_bytes wanted = idem_bytes_of(name);

    for (const struct idem_metadata_entry *entry = metadata->first; entry;
         entry = entry->next)
        if (idem_bytes_equal(entry->name, wanted)) {
            *value = entry->value;
            return true;
        }
    return false;
}

bool
metadata_is_reserved(struct idem_bytes name)
{
    size_t size = strlen(METADATA_RESERVED);

    return name.size >= size && memcmp(name.data, METADATA_RESERVED, size) == 0;
}

void
metadata_drop_reserved(struct idem_metadata *metadata)
{
    struct idem_metadata_entry **at = &metadata->first, *entry;

    while ((entry = *at)) {
        if (metadata_is_reserved(entry->name)) {
            metadata->size -= entry->name.size + entry->value.size + ENTRY_COST;
            *at = entry->next;
        } else {
            at = &entry->next;
        }
    }
    metadata->last = metadata->first ? at : NULL;
}
