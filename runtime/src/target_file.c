#include "target_inside.h"

#include <idem/watch.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Addresses of a file, one a line. */

struct file {
    struct target base;
    char *path;
    struct target_names names; /* of the first reading */
    struct idem_watch *watch;
};

/* --- Reading --- */

static struct idem_bytes
trimmed(const char *line)
{
    size_t size;

    line += strspn(line, " \t");
    size = strcspn(line, "#\r\n");
    while (size > 0 && strchr(" \t", line[size - 1]))
        size--;
    return (struct idem_bytes){(const uint8_t *)line, size};
}

static enum idem_status
read_lines(FILE *file, const char *path, struct target_names *names,
           struct idem_error *err)
{
    enum idem_status status = IDEM_OK;
    struct idem_error why;
    char *line = NULL;
    size_t room = 0;
    unsigned n = 0;

    while (status == IDEM_OK && getline(&line, &room, file) >= 0) {
        struct idem_bytes text = trimmed(line);

        n++;
        if (text.size > 0)
            status = target_names_add(names, text, &why);
    }
    free(line);
    if (status != IDEM_OK)
        return idem_fail(err, status, "%s: line %u: %s", path, n, why.message);
    if (names->n == 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s has no address", path);
    return IDEM_OK;
}

static enum idem_status
read_file(const char *path, struct target_names *names, struct idem_error *err)
{
    FILE *file = fopen(path, "re");
    enum idem_status status;

    if (!file)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: %s", path,
                         strerror(errno));
    status = read_lines(file, path, names, err);
    (void)fclose(file);
    return status;
}

/* --- Watching --- */

static void
read_again(void *with)
{
    struct file *file = with;
    struct target_names names = {.io = file->base.options.io};
    struct idem_error err = {0};

    if (read_file(file->path, &names, &err) == IDEM_OK)
        target_tell(&file->base, &names);
    else
        file->base.options.trouble(file->base.options.with, &err);
    target_names_fini(&names);
}

/* --- Its life --- */

static enum idem_status
file_start(struct target *target, struct idem_error *err)
{
    struct file *file = (struct file *)target;

    target_tell(target, &file->names);
    return idem_watch_start(file->watch, read_again, file, err);
}

static void
file_stop(struct target *target)
{
    struct file *file = (struct file *)target;

    idem_watch_free(file->watch);
    file->watch = NULL;
}

static void
file_free(struct target *target)
{
    struct file *file = (struct file *)target;

    file_stop(target);
    target_names_fini(&file->names);
    free(file->path);
    free(file);
}

static const struct target_ops file_ops = {
    .start = file_start,
    .stop = file_stop,
    .free = file_free,
};

/* The folder first, then the file: no change is missed in between. */
static enum idem_status
watch_and_read(struct file *file, struct idem_error *err)
{
    const char *const paths[] = {file->path};
    enum idem_status status = idem_watch_new(&file->watch, paths, 1, err);

    return status == IDEM_OK ? read_file(file->path, &file->names, err)
                             : status;
}

enum idem_status
target_file_new(struct target **out, const char *path,
                const struct target_options *options, struct idem_error *err)
{
    struct file *file;
    enum idem_status status;

    if (path[0] != '/' || !path[1])
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "target \"file://%.100s\": want an absolute path: "
                         "file:///etc/pay/servers",
                         path);
    file = calloc(1, sizeof *file);
    if (!file)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    file->base = (struct target){&file_ops, *options};
    file->names.io = options->io;
    file->path = strdup(path);
    if (!file->path)
        status = idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    else
        status = watch_and_read(file, err);
    if (status != IDEM_OK) {
        file_free(&file->base);
        return status;
    }
    *out = &file->base;
    return IDEM_OK;
}
