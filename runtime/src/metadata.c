#include "metadata.h"

#include "printable.h"

#include <string.h>

#define ENTRY_COST 32 /* as HTTP/2 counts a header (RFC 9113, 6.5.2) */

/* clang-format off */
static const bool in_names[256] = {
    ['-'] = 1, ['.'] = 1, ['_'] = 1,
    ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1,
    ['5'] = 1, ['6'] = 1, ['7'] = 1, ['8'] = 1, ['9'] = 1,
    ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1,
    ['h'] = 1, ['i'] = 1, ['j'] = 1, ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1,
    ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1, ['u'] = 1,
    ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1,
};
/* clang-format on */

static bool
is_name(struct idem_bytes name)
{
    bool all = name.size > 0;

    for (size_t i = 0; i < name.size; i++)
        all &= in_names[name.data[i]];
    return all;
}

static bool
is_binary(struct idem_bytes name)
{
    return name.size >= 4 && memcmp(name.data + name.size - 4, "-bin", 4) == 0;
}

/* For the error's text: what is printable of a name, cut. */
static const char *
shown(char text[65], struct idem_bytes name)
{
    size_t size = name.size < 64 ? name.size : 64;

    for (size_t i = 0; i < size; i++)
        text[i] =
            (char)(is_printable((struct idem_bytes){name.data + i, 1}, ' ')
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
    if (!is_binary(name) && !is_printable(value, ' '))
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

/* A copy that a zero ends; the byte behind it. */
static uint8_t *
put(uint8_t *at, struct idem_bytes bytes)
{
    if (bytes.size > 0)
        memcpy(at, bytes.data, bytes.size);
    at[bytes.size] = 0;
    return at + bytes.size + 1;
}

/* The entry with its bytes behind it. */
static struct idem_metadata_entry *
entry_of(struct idem_arena *arena, struct idem_bytes name,
         struct idem_bytes value)
{
    struct idem_metadata_entry *entry =
        idem_arena_alloc(arena, sizeof(*entry) + name.size + value.size + 2);
    uint8_t *at, *after;

    if (!entry)
        return NULL;
    at = (uint8_t *)(entry + 1);
    after = put(at, name);
    (void)put(after, value);
    *entry = (struct idem_metadata_entry){
        .name = {at, name.size},
        .value = {after, value.size},
    };
    return entry;
}

static size_t
cost_of(const struct idem_metadata_entry *entry)
{
    return entry->name.size + entry->value.size + ENTRY_COST;
}

enum idem_status
idem_metadata_add(struct idem_metadata *metadata, struct idem_arena *arena,
                  struct idem_bytes name, struct idem_bytes value,
                  struct idem_error *err)
{
    enum idem_status status = check(metadata, name, value, err);

    if (status != IDEM_OK)
        return status;

    struct idem_metadata_entry *entry = entry_of(arena, name, value);

    if (!entry)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "no memory for metadata of %zu bytes",
                         name.size + value.size);
    if (!metadata->last)
        metadata->last = &metadata->first;
    *metadata->last = entry;
    metadata->last = &entry->next;
    metadata->size += cost_of(entry);
    return IDEM_OK;
}

void
idem_metadata_drop(struct idem_metadata *metadata,
                   bool (*drops)(struct idem_bytes name))
{
    struct idem_metadata_entry **link = &metadata->first;

    while (*link) {
        struct idem_metadata_entry *entry = *link;

        if (drops(entry->name)) {
            *link = entry->next;
            metadata->size -= cost_of(entry);
        } else {
            link = &entry->next;
        }
    }
    metadata->last = metadata->first ? link : NULL;
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

bool
metadata_has_reserved(const struct idem_metadata *metadata)
{
    const struct idem_metadata_entry *entry = metadata->first;

    while (entry && !metadata_is_reserved(entry->name))
        entry = entry->next;
    return entry;
}

void
metadata_drop_reserved(struct idem_metadata *metadata)
{
    idem_metadata_drop(metadata, metadata_is_reserved);
}
