#include "token_table.h"

#include "word_lines.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)4 << 20)
#define PREFIX "sha256:"
#define PREFIX_SIZE (sizeof(PREFIX) - 1)

struct reading {
    const char *path;
    struct word_lines lines;
    struct token_table *table;
    unsigned room;
    struct idem_error *err;
};

static enum idem_status
refuse(const struct reading *reading, const char *why)
{
    return idem_fail(reading->err, IDEM_INVALID_ARGUMENT, "%s: line %u: %s",
                     reading->path, reading->lines.line, why);
}

/* --- A line --- */

static struct idem_bytes
copy_of(struct idem_bytes bytes)
{
    return (struct idem_bytes){(const uint8_t *)word_copy(bytes), bytes.size};
}

static int
digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
read_hash(uint8_t hash[IDEM_SHA256_SIZE], struct idem_bytes word)
{
    if (word.size != PREFIX_SIZE + 2 * (size_t)IDEM_SHA256_SIZE ||
        memcmp(word.data, PREFIX, PREFIX_SIZE) != 0)
        return false;
    for (unsigned i = 0; i < IDEM_SHA256_SIZE; i++) {
        const uint8_t *at = word.data + PREFIX_SIZE + 2 * i;
        int high = digit_of(at[0]), low = digit_of(at[1]);

        if (high < 0 || low < 0)
            return false;
        hash[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static enum idem_status
read_roles(const struct reading *reading, struct token_entry *entry,
           struct idem_bytes list)
{
    struct idem_bytes role;

    entry->roles = calloc(IDEM_ROLES_MAX, sizeof *entry->roles);
    IDEM_ASSERT(entry->roles);
    while (word_next_of_list(&list, &role)) {
        if (!word_is_name(role))
            return refuse(reading, "a role is empty or over 255 bytes, or not "
                                   "printable ASCII");
        if (entry->n_roles == IDEM_ROLES_MAX)
            return refuse(reading, "over 64 roles");
        entry->roles[entry->n_roles++] = copy_of(role);
    }
    return IDEM_OK;
}

static enum idem_status
read_line(const struct reading *reading, struct token_entry *entry,
          struct idem_bytes line)
{
    struct idem_bytes word;
    enum idem_status status = IDEM_OK;

    (void)word_next(&line, &word); /* a line has a first word */
    if (!word_is_name(word))
        return refuse(reading, "the identity is over 255 bytes, or not "
                               "printable ASCII");
    entry->identity = copy_of(word);
    if (!word_next(&line, &word) || !read_hash(entry->hash, word))
        return refuse(reading, "after the identity comes sha256: and 64 hex "
                               "digits");
    if (word_next(&line, &word))
        status = read_roles(reading, entry, word);
    if (status == IDEM_OK && word_next(&line, &word))
        return refuse(reading, "after the roles comes nothing");
    return status;
}

static struct token_entry *
new_entry(struct reading *reading)
{
    struct token_table *table = reading->table;
    struct token_entry *entries;

    if (table->n == reading->room) {
        reading->room = reading->room ? 2 * reading->room : 16;
        entries = realloc(table->entries, reading->room * sizeof *entries);
        IDEM_ASSERT(entries);
        table->entries = entries;
    }
    table->entries[table->n] = (struct token_entry){0};
    return &table->entries[table->n++];
}

/* --- The file --- */

static void
table_free(void *meaning)
{
    struct token_table *table = meaning;

    for (unsigned i = 0; i < table->n; i++) {
        struct token_entry *entry = &table->entries[i];

        for (unsigned j = 0; j < entry->n_roles; j++)
            free((void *)(uintptr_t)entry->roles[j].data);
        free(entry->roles);
        free((void *)(uintptr_t)entry->identity.data);
    }
    free(table->entries);
    free(table);
}

static int
by_hash(const void *a, const void *b)
{
    const struct token_entry *one = a, *other = b;

    return memcmp(one->hash, other->hash, IDEM_SHA256_SIZE);
}

static enum idem_status
sort(const struct reading *reading)
{
    const struct token_table *table = reading->table;

    if (table->n > 0)
        qsort(table->entries, table->n, sizeof *table->entries, by_hash);
    for (unsigned i = 1; i < table->n; i++)
        if (by_hash(&table->entries[i - 1], &table->entries[i]) == 0)
            return idem_fail(reading->err, IDEM_INVALID_ARGUMENT,
                             "%s: %.*s and %.*s have the same token",
                             reading->path,
                             (int)table->entries[i - 1].identity.size,
                             (const char *)table->entries[i - 1].identity.data,
                             (int)table->entries[i].identity.size,
                             (const char *)table->entries[i].identity.data);
    return IDEM_OK;
}

static enum idem_status
table_read(void **meaning, const char *path, struct idem_bytes text,
           struct idem_error *err)
{
    struct reading reading = {
        .path = path, .lines = {.rest = text}, .err = err};
    enum idem_status status = IDEM_OK;
    struct idem_bytes line;

    reading.table = calloc(1, sizeof *reading.table);
    IDEM_ASSERT(reading.table);
    while (status == IDEM_OK && word_lines_next(&reading.lines, &line))
        status = read_line(&reading, new_entry(&reading), line);
    if (status == IDEM_OK)
        status = sort(&reading);
    if (status != IDEM_OK) {
        table_free(reading.table);
        return status;
    }
    *meaning = reading.table;
    return IDEM_OK;
}

const struct kept_file_ops token_table_ops = {
    .max_size = FILE_MAX_BYTES,
    .read = table_read,
    .free = table_free,
};

/* Who does not know the token learns nothing of a hash by how far a search for
 * another one went: he cannot choose hashes. The last comparison takes its time
 * all the same. */
const struct token_entry *
token_table_find(const struct token_table *table, struct idem_bytes token)
{
    struct token_entry wanted;
    const struct token_entry *found;

    if (table->n == 0)
        return NULL;
    idem_sha256_of(token, wanted.hash);
    found = bsearch(&wanted, table->entries, table->n, sizeof wanted, by_hash);
    return found &&
                   idem_digest_equal(found->hash, wanted.hash, IDEM_SHA256_SIZE)
               ? found
               : NULL;
}
