#include "config_value.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* methodConfig[i].name: which calls an entry is for. No name stands twice in a
 * config. */

static void
keep_text(struct reader *reader, const struct place *place, const json_t *value,
          char **text)
{
    const char *given = json_string_value(value);

    if (!given) {
        reader_fault(reader, place, "is not a string");
        return;
    }
    free(*text);
    *text = strdup(given);
    IDEM_ASSERT(*text);
}

static void
read_service(struct reader *reader, const struct place *place,
             const json_t *value, void *into)
{
    struct config_name *name = into;

    keep_text(reader, place, value, &name->service);
}

static void
read_method(struct reader *reader, const struct place *place,
            const json_t *value, void *into)
{
    struct config_name *name = into;

    keep_text(reader, place, value, &name->method);
}

static void
read_name(struct reader *reader, const struct place *place, const json_t *value,
          unsigned entry)
{
    static const struct member members[] = {
        {"service", false, read_service},
        {"method", false, read_method},
    };
    struct config *config = reader->config;
    struct config_name *name = &config->names[config->n_names++];

    *name = (struct config_name){strdup(""), strdup(""), entry,
                                 (unsigned)place->index};
    IDEM_ASSERT(name->service && name->method);
    read_members(reader, place, value, members, COUNT(members), name);
    if (name->method[0] && !name->service[0])
        reader_fault(reader, place, "has a method and no service");
}

/* Twice as much each time: there may be very many entries. */
static void
make_room(struct reader *reader, size_t names)
{
    struct config *config = reader->config;

    if (names <= reader->names_room)
        return;
    reader->names_room = names * 2;
    config->names =
        realloc(config->names, reader->names_room * sizeof(*config->names));
    IDEM_ASSERT(config->names);
}

void
config_read_names(struct reader *reader, const struct place *place,
                  const json_t *value, void *into)
{
    struct config *config = reader->config;
    struct config_entry *entry = into;
    size_t count = json_array_size(value);

    if (count == 0) {
        reader_fault(reader, place, "is not an array of one name or more");
        return;
    }
    make_room(reader, config->n_names + count);
    for (size_t i = 0; i < count; i++) {
        struct place inner = {place, NULL, i};

        read_name(reader, &inner, json_array_get(value, i),
                  (unsigned)(entry - config->entries));
    }
}

/* --- Names that stand twice --- */

static int
compare(const struct config_name *one, const struct config_name *other)
{
    int order = strcmp(one->service, other->service);

    return order ? order : strcmp(one->method, other->method);
}

/* The same ones in the order of the config, in which they are an array. */
static int
compare_places(const void *left, const void *right)
{
    const struct config_name *const *one = left, *const *other = right;
    int order = compare(*one, *other);

    return order ? order : (*one > *other) - (*one < *other);
}

static void
fault_twice(struct reader *reader, const struct config_name *name,
            const struct config_name *first)
{
    const struct place whole = {NULL, NULL, 0};
    const struct place entries = {&whole, "methodConfig", 0};
    const struct place entry = {&entries, NULL, name->entry};
    const struct place names = {&entry, "name", 0};
    const struct place place = {&names, NULL, name->at};

    reader_fault(reader, &place, "stands in methodConfig[%u] already",
                 first->entry);
}

/* Sorted, since there may be very many. */
void
config_check_names(struct reader *reader)
{
    const struct config *config = reader->config;
    const struct config_name **sorted, *first = NULL;

    if (config->n_names == 0)
        return;
    sorted = malloc(config->n_names * sizeof(*sorted));
    IDEM_ASSERT(sorted);
    for (unsigned i = 0; i < config->n_names; i++)
        sorted[i] = &config->names[i];
    qsort(sorted, config->n_names, sizeof(*sorted), compare_places);
    for (unsigned i = 0; i < config->n_names; i++)
        if (first && compare(first, sorted[i]) == 0)
            fault_twice(reader, sorted[i], first);
        else
            first = sorted[i];
    free(sorted);
}
