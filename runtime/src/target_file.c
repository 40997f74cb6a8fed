#include "target_inside.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Addresses of a file, one a line. Its folder is watched, not the file: who
 * replaces a file by renaming makes another one of the same name. */

#define WATCHED (IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM)
#define EVENTS_SIZE 4096

struct file {
    struct target base;
    char *path;
    struct target_names names; /* of the first reading, then the thread's */
    int watch, stop;           /* inotify's; an eventfd */
    bool running;
    pthread_t thread;
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
read_again(struct file *file)
{
    struct target_names names = {.io = file->base.options.io};
    struct idem_error err = {0};

    if (read_file(file->path, &names, &err) == IDEM_OK)
        target_tell(&file->base, &names);
    else
        file->base.options.trouble(file->base.options.with, &err);
    target_names_fini(&names);
}

/* Read what has happened. Is any of it about our file? */
static bool
concerns_us(const struct file *file)
{
    _Alignas(struct inotify_event) char events[EVENTS_SIZE];
    const char *name = strrchr(file->path, '/') + 1;
    ssize_t size = read(file->watch, events, sizeof events);
    bool ours = false;

    for (char *at = events; size > 0 && at < events + size;) {
        const struct inotify_event *event = (const void *)at;

        /* After an overflow anything may have happened. */
        ours = ours || event->mask & IN_Q_OVERFLOW ||
               (event->len > 0 && strcmp(event->name, name) == 0);
        at += sizeof *event + event->len;
    }
    return ours;
}

static void *
run(void *with)
{
    struct file *file = with;
    struct pollfd fds[] = {{file->watch, POLLIN, 0}, {file->stop, POLLIN, 0}};

    for (;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents)
            return NULL;
        if (fds[0].revents && concerns_us(file))
            read_again(file);
    }
}

/* --- Its life --- */

static enum idem_status
file_start(struct target *target, struct idem_error *err)
{
    struct file *file = (struct file *)target;

    target_tell(target, &file->names);
    file->running = pthread_create(&file->thread, NULL, run, file) == 0;
    if (!file->running)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no thread for %s",
                         file->path);
    return IDEM_OK;
}

static void
file_stop(struct target *target)
{
    struct file *file = (struct file *)target;

    if (!file->running)
        return;
    file->running = false;
    (void)eventfd_write(file->stop, 1);
    pthread_join(file->thread, NULL);
}

static void
file_free(struct target *target)
{
    struct file *file = (struct file *)target;

    if (file->watch >= 0)
        close(file->watch);
    if (file->stop >= 0)
        close(file->stop);
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
watch_folder(struct file *file, struct idem_error *err)
{
    char *last = strrchr(file->path, '/');
    int rc;

    file->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    file->stop = eventfd(0, EFD_CLOEXEC);
    if (file->watch < 0 || file->stop < 0)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "%s: %s", file->path,
                         strerror(errno));
    *last = 0;
    rc =
        inotify_add_watch(file->watch, *file->path ? file->path : "/", WATCHED);
    *last = '/';
    if (rc < 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: its folder: %s",
                         file->path, strerror(errno));
    return IDEM_OK;
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
    file->watch = file->stop = -1;
    file->path = strdup(path);
    if (!file->path)
        status = idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    else
        status = watch_folder(file, err);
    if (status == IDEM_OK)
        status = read_file(file->path, &file->names, err);
    if (status != IDEM_OK) {
        file_free(&file->base);
        return status;
    }
    *out = &file->base;
    return IDEM_OK;
}
