#include "config.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define CONFIG_FIELD_NAME(name, text) [CONFIG_##name] = text,
    CONFIG_FIELDS(CONFIG_FIELD_NAME)
#undef CONFIG_FIELD_NAME
};

const char *
config_field_name(enum config_field field)
{
    return names[field];
}

void
config_free(struct config *config)
{
    if (!config)
        return;
    for (unsigned i = 0; i < config->n_names; i++) {
        free(config->names[i].service);
        free(config->names[i].method);
    }
    free(config->names);
    free(config->entries);
    free(config);
}

/* How closely the name is the method's: 0 is not at all. */
static unsigned
closeness(const struct config_name *name, const char *method)
{
    size_t size = strlen(name->service);

    if (size == 0)
        return 1;
    if (strncmp(name->service, method, size) != 0 || method[size] != '/')
        return 0;
    if (name->method[0] == 0)
        return 2;
    return strcmp(name->method, method + size + 1) == 0 ? 3 : 0;
}

const struct config_entry *
config_find(const struct config *config, const char *method,
            const struct config_name **name)
{
    const struct config_name *found = NULL;
    unsigned closest = 0;

    for (unsigned i = 0; config && i < config->n_names; i++) {
        unsigned close = closeness(&config->names[i], method);

        if (close > closest) {
            closest = close;
            found = &config->names[i];
        }
    }
    if (name)
        *name = found;
    return found ? &config->entries[found->entry] : NULL;
}
