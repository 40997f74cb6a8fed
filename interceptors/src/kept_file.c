#include "kept_file.h"

#include <idem/watch.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kept_file {
    char *path;
    const struct kept_file_ops *ops;
    idem_auth_reloaded_fn *reloaded;
    void *with;
    struct idem_watch *watch;

    pthread_mutex_t lock; /* guards the rest */
    struct kept *now;
};

void
kept_release(struct kept *kept)
{
    if (atomic_fetch_sub_explicit(&kept->refs, 1, memory_order_acq_rel) != 1)
        return;
    kept->free(kept->meaning);
    free(kept);
}

struct kept *
kept_file_hold(struct kept_file *file)
{
    struct kept *kept;

    pthread_mutex_lock(&file->lock);
    kept = file->now;
    atomic_fetch_add_explicit(&kept->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&file->lock);
    return kept;
}

/* The whole text, with a NUL behind it; max_size + 1 bytes: it is larger. */
static enum idem_status
read_text(const struct kept_file *file, char *text, size_t *size,
          struct idem_error *err)
{
    FILE *from = fopen(file->path, "re");
    bool broken;

    if (!from)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: %s", file->path,
                         strerror(errno));
    setvbuf(from, NULL, _IONBF, 0); /* no second copy that is not wiped */
    *size = fread(text, 1, file->ops->max_size + 1, from);
    broken = ferror(from);
    (void)fclose(from);
    if (broken)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: cannot be read",
                         file->path);
    if (*size > file->ops->max_size)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: over %zu bytes",
                         file->path, file->ops->max_size);
    text[*size] = 0;
    return IDEM_OK;
}

static enum idem_status
read_meaning(const struct kept_file *file, void **meaning,
             struct idem_error *err)
{
    size_t room = file->ops->max_size + 2, size = 0;
    char *text = malloc(room);
    enum idem_status status;

    if (!text)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    status = read_text(file, text, &size, err);
    if (status == IDEM_OK)
        status = file->ops->read(
            meaning, file->path,
            (struct idem_bytes){(const uint8_t *)text, size}, err);
    explicit_bzero(text, size);
    free(text);
    return status;
}

/* What it means now takes the place of what it meant. */
static enum idem_status
take(struct kept_file *file, struct idem_error *err)
{
    struct kept *kept = calloc(1, sizeof *kept), *before;
    enum idem_status status;

    if (!kept)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    status = read_meaning(file, &kept->meaning, err);
    if (status != IDEM_OK) {
        free(kept);
        return status;
    }
    kept->free = file->ops->free;
    atomic_init(&kept->refs, 1);
    pthread_mutex_lock(&file->lock);
    before = file->now;
    file->now = kept;
    pthread_mutex_unlock(&file->lock);
    if (before)
        kept_release(before);
    return IDEM_OK;
}

static void
read_again(void *with)
{
    struct kept_file *file = with;
    struct idem_error err = {0};
    bool good = take(file, &err) == IDEM_OK;

    if (file->reloaded)
        file->reloaded(file->with, file->path, good ? NULL : &err);
}

/* Noted first, then read: no change is missed. */
static enum idem_status
read_and_watch(struct kept_file *file, struct idem_error *err)
{
    const char *path = file->path;
    enum idem_status status = idem_watch_new(&file->watch, &path, 1, err);

    if (status == IDEM_OK)
        status = take(file, err);
    if (status == IDEM_OK)
        status = idem_watch_start(file->watch, read_again, file, err);
    return status;
}

enum idem_status
kept_file_new(struct kept_file **out, const char *path,
              const struct kept_file_ops *ops, idem_auth_reloaded_fn *reloaded,
              void *with, struct idem_error *err)
{
    struct kept_file *file = calloc(1, sizeof *file);
    enum idem_status status;

    if (!file)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    pthread_mutex_init(&file->lock, NULL);
    file->ops = ops;
    file->reloaded = reloaded;
    file->with = with;
    file->path = strdup(path);
    status = file->path
                 ? read_and_watch(file, err)
                 : idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (status != IDEM_OK) {
        kept_file_free(file);
        return status;
    }
    *out = file;
    return IDEM_OK;
}

void
kept_file_free(struct kept_file *file)
{
    if (!file)
        return;
    idem_watch_free(file->watch);
    if (file->now)
        kept_release(file->now);
    pthread_mutex_destroy(&file->lock);
    free(file->path);
    free(file);
}
