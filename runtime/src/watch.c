#include <idem/watch.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOVES                                                                  \
    (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE |    \
     IN_ATTRIB)
#define EVENTS_SIZE 4096

/* What tells one state of a file from another. All zero: not there. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed; /* what is in it, or who may read it */
};

struct idem_watch {
    char *paths[IDEM_WATCH_MAX];
    int folders[IDEM_WATCH_MAX];         /* inotify's, of each path */
    struct stamp stamps[IDEM_WATCH_MAX]; /* the thread's, once it runs */
    unsigned n;
    int moves; /* inotify */
    int stop;  /* eventfd */
    idem_watch_fn *changed;
    void *with;
    bool running;
    pthread_t thread;
};

static struct stamp
stamp_of(const char *path)
{
    struct stamp stamp;
    struct stat now;

    memset(&stamp, 0, sizeof stamp);
    if (stat(path, &now) != 0)
        return stamp;
    stamp.device = now.st_dev;
    stamp.inode = now.st_ino;
    stamp.size = now.st_size;
    stamp.changed = now.st_ctim;
    return stamp;
}

static bool
same(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Note how they are. True: not as before. */
static bool
look(struct idem_watch *watch)
{
    bool changed = false;

    for (unsigned i = 0; i < watch->n; i++) {
        struct stamp now = stamp_of(watch->paths[i]);

        changed = changed || !same(&now, &watch->stamps[i]);
        watch->stamps[i] = now;
    }
    return changed;
}

/* --- Moves --- */

static const char *
name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Which of the files it names; NULL: something beside them. */
static const char *
named_by(const struct idem_watch *watch, const struct inotify_event *event)
{
    for (unsigned i = 0; event->len > 0 && i < watch->n; i++)
        if (watch->folders[i] == event->wd &&
            strcmp(event->name, name_of(watch->paths[i])) == 0)
            return watch->paths[i];
    return NULL;
}

/* A file that was made just now: whoever writes it will close it. A link is
 * whole at once. */
static bool
is_being_written(const char *path)
{
    struct stat now;

    return lstat(path, &now) == 0 && S_ISREG(now.st_mode) && now.st_nlink == 1;
}

/* What has moved. */
struct moves {
    bool any;
    bool named; /* one of the files, also when its stamp is as before: the grain
                 * of a file system's clock is coarse */
};

static void
note(const struct idem_watch *watch, const struct inotify_event *event,
     struct moves *moves)
{
    const char *path = named_by(watch, event);

    if (path && event->mask & IN_CREATE && is_being_written(path))
        return;
    moves->any = true;
    if (path || event->mask & IN_Q_OVERFLOW)
        moves->named = true;
}

/* All that is there, so that many moves are one look. */
static struct moves
drain(const struct idem_watch *watch)
{
    _Alignas(struct inotify_event) char events[EVENTS_SIZE];
    struct moves moves = {false, false};
    ssize_t size;

    while ((size = read(watch->moves, events, sizeof events)) > 0)
        for (char *at = events; at < events + size;) {
            const struct inotify_event *event = (const void *)at;

            note(watch, event, &moves);
            at += sizeof *event + event->len;
        }
    return moves;
}

static void *
run(void *with)
{
    struct idem_watch *watch = with;
    struct pollfd fds[] = {{watch->moves, POLLIN, 0}, {watch->stop, POLLIN, 0}};

    while (!(fds[1].revents & POLLIN)) {
        struct moves moves = drain(watch);
        bool changed = moves.any && look(watch);

        if (changed || moves.named)
            watch->changed(watch->with);
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
    }
    return NULL;
}

/* --- Its life --- */

static char *
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Once more the same folder is the same watch to inotify. */
static enum idem_status
add(struct idem_watch *watch, const char *path, struct idem_error *err)
{
    char *folder = folder_of(path);
    char *copy = strdup(path);
    int *wd = &watch->folders[watch->n];
    enum idem_status status = IDEM_OK;

    if (!folder || !copy)
        status = idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    else if ((*wd = inotify_add_watch(watch->moves, folder, MOVES)) < 0)
        status = idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: its folder: %s",
                           path, strerror(errno));
    free(folder);
    if (status != IDEM_OK) {
        free(copy);
        return status;
    }
    watch->paths[watch->n++] = copy;
    return IDEM_OK;
}

enum idem_status
idem_watch_new(struct idem_watch **out, const char *const *paths, unsigned n,
               struct idem_error *err)
{
    struct idem_watch *watch = calloc(1, sizeof *watch);
    enum idem_status status = IDEM_OK;

    IDEM_ASSERT(n <= IDEM_WATCH_MAX);
    if (!watch)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    watch->moves = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watch->stop = eventfd(0, EFD_CLOEXEC);
    if (watch->moves < 0 || watch->stop < 0)
        status = idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "watching files: %s",
                           strerror(errno));
    for (unsigned i = 0; i < n && status == IDEM_OK; i++)
        if (paths[i])
            status = add(watch, paths[i], err);
    if (status != IDEM_OK) {
        idem_watch_free(watch);
        return status;
    }
    (void)look(watch);
    *out = watch;
    return IDEM_OK;
}

enum idem_status
idem_watch_start(struct idem_watch *watch, idem_watch_fn *changed, void *with,
                 struct idem_error *err)
{
    watch->changed = changed;
    watch->with = with;
    watch->running = pthread_create(&watch->thread, NULL, run, watch) == 0;
    if (!watch->running)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "no thread to watch files");
    return IDEM_OK;
}

void
idem_watch_free(struct idem_watch *watch)
{
    if (!watch)
        return;
    if (watch->running && eventfd_write(watch->stop, 1) == 0)
        pthread_join(watch->thread, NULL);
    if (watch->moves >= 0)
        close(watch->moves);
    if (watch->stop >= 0)
        close(watch->stop);
    for (unsigned i = 0; i < watch->n; i++)
        free(watch->paths[i]);
    free(watch);
}
