#ifndef KEPT_FILE_H
#define KEPT_FILE_H

#include <idem/auth.h>

#include <stdatomic.h>

/* A small file whose meaning is kept in memory, and read again when it changes.
 * Who holds a meaning keeps it, whatever becomes of the file. Its text is wiped
 * after reading: it may be a secret. */
struct kept_file;

struct kept {
    void *meaning;
    void (*free)(void *meaning);
    atomic_uint refs;
};

struct kept_file_ops {
    size_t max_size; /* bytes; over it the file is refused */

    /* What the text means; INVALID_ARGUMENT with a message that begins with the
     * path. text is followed by a NUL. */
    enum idem_status (*read)(void **meaning, const char *path,
                             struct idem_bytes text, struct idem_error *err);
    void (*free)(void *meaning);
};

/**
 * Read it and watch it.
 *
 * @param reloaded  told each reading after the first; NULL: nobody is
 *
 * @retval IDEM_INVALID_ARGUMENT    not there, too large, or what read says
 * @retval IDEM_RESOURCE_EXHAUSTED  memory, descriptors, threads
 */
enum idem_status kept_file_new(struct kept_file **file, const char *path,
                               const struct kept_file_ops *ops,
                               idem_auth_reloaded_fn *reloaded, void *with,
                               struct idem_error *err) IDEM_MUST_CHECK;

/* NULL is fine. */
void kept_file_free(struct kept_file *file);

/* What it means now, until kept_release. Any thread. */
struct kept *kept_file_hold(struct kept_file *file);
void kept_release(struct kept *kept);

#endif
