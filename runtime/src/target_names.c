#include "target_names.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX 255 /* bytes of an address */
#define ROOM_FIRST 4
#define TCP "tcp://"

void
target_names_fini(struct target_names *names)
{
    for (unsigned i = 0; i < names->n; i++)
        free(names->at[i]);
    free(names->at);
    *names = (struct target_names){.io = names->io};
}

/* Dialers are cheap and connect to nothing yet. */
static enum idem_status
check(const struct io *io, const char *name, struct idem_error *err)
{
    enum idem_status status = IDEM_OK;
    struct io_dialer *dialer;

    if (!io)
        status = io_find(name, &io, err);
    if (status == IDEM_OK)
        status = io->dialer(io, name, &dialer, err);
    if (status == IDEM_OK)
        dialer->ops->free(dialer);
    return status;
}

/* With its scheme, on the heap. */
static char *
whole_name(const struct io *io, struct idem_bytes text)
{
    const char *prefix = io && io->bare ? io->bare : TCP;
    bool bare = !memmem(text.data, text.size, "://", 3);
    size_t scheme = bare ? strlen(prefix) : 0;
    char *name = malloc(scheme + text.size + 1);

    if (!name)
        return NULL;
    memcpy(name, prefix, scheme);
    memcpy(name + scheme, text.data, text.size);
    name[scheme + text.size] = 0;
    return name;
}

static bool
has(const struct target_names *names, const char *name)
{
    for (unsigned i = 0; i < names->n; i++)
        if (strcmp(names->at[i], name) == 0)
            return true;
    return false;
}

static bool
grow(struct target_names *names)
{
    unsigned room = names->room ? names->room * 2 : ROOM_FIRST;
    char **at;

    if (names->n < names->room)
        return true;
    at = realloc(names->at, room * sizeof *at);
    if (!at)
        return false;
    names->at = at;
    names->room = room;
    return true;
}

enum idem_status
target_names_add(struct target_names *names, struct idem_bytes text,
                 struct idem_error *err)
{
    enum idem_status status;
    char *name;

    if (text.size == 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "\"\" is no address: want scheme://place");
    if (text.size > NAME_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "\"%.40s…\" has %zu bytes, an address at most %d",
                         (const char *)text.data, text.size, NAME_MAX);
    if (names->n == TARGET_NAMES_MAX)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "over %d addresses",
                         TARGET_NAMES_MAX);
    name = whole_name(names->io, text);
    if (!name || !grow(names)) {
        free(name);
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    }
    status = check(names->io, name, err);
    if (status != IDEM_OK || has(names, name))
        free(name);
    else
        names->at[names->n++] = name;
    return status;
}
