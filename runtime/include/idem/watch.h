#ifndef IDEM_WATCH_H
#define IDEM_WATCH_H

#include <idem/status.h>

/* Files that are read again when they change: certificates, keys, tokens,
 * configs, lists of addresses. Their folders are watched (inotify), not the
 * files: who replaces a file renames another one over it, and a folder of links
 * (Kubernetes) changes a link beside it. A file that goes, or whose mode is
 * another one, has changed, too. */
struct idem_watch;

#define IDEM_WATCH_MAX 8 /* files of one watch */

/* Some of the files are not what they were. On the watch's thread; may block.
 */
typedef void idem_watch_fn(void *with);

IDEM_BEGIN_DECLS

/**
 * Note how the files are now. Read them after this and before idem_watch_start,
 * and no change is missed.
 *
 * @param paths  copied; at most IDEM_WATCH_MAX, and NULLs are left out
 *
 * @retval IDEM_INVALID_ARGUMENT    a folder is not there: named
 * @retval IDEM_RESOURCE_EXHAUSTED  memory, descriptors
 */
IDEM_API enum idem_status idem_watch_new(struct idem_watch **watch,
                                         const char *const *paths, unsigned n,
                                         struct idem_error *err)
    IDEM_MUST_CHECK;

/* Tell of changes from now on. Once.
 *
 * @retval IDEM_RESOURCE_EXHAUSTED  no thread */
IDEM_API enum idem_status idem_watch_start(struct idem_watch *watch,
                                           idem_watch_fn *changed, void *with,
                                           struct idem_error *err)
    IDEM_MUST_CHECK;

/* Not from inside changed, which does not run after this. NULL is fine. */
IDEM_API void idem_watch_free(struct idem_watch *watch);

IDEM_END_DECLS

#endif
