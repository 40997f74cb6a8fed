#include "policies.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Reads the file again when something moves in its folder: editors rename over
 * it, and a folder of links (Kubernetes) changes a link beside it. */

struct policy_watch {
    struct policies *policies;
    pthread_t thread;
    int moves; /* inotify */
    int stop;  /* eventfd */
};

static void
read_again(struct policies *policies)
{
    struct idem_error err;

    if (policies_load(policies, NULL, true, &err) == IDEM_NOT_FOUND)
        policies_report(policies, "%s; what was before holds", err.message);
}

/* All that is there, so that many moves are one reading. */
static void
drain(int moves)
{
    char events[4096];

    while (read(moves, events, sizeof events) > 0)
        continue;
}

static void *
watch(void *with)
{
    struct policy_watch *self = with;
    struct pollfd fds[] = {{self->moves, POLLIN, 0}, {self->stop, POLLIN, 0}};

    while (!(fds[1].revents & POLLIN)) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[0].revents & POLLIN) {
            drain(self->moves);
            read_again(self->policies);
        }
    }
    return NULL;
}

static char *
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* NULL is fine. */
static bool
watch_beside(struct policy_watch *self, const char *path)
{
    char *folder = path ? folder_of(path) : NULL;
    bool watches =
        !path ||
        (folder && inotify_add_watch(self->moves, folder,
                                     IN_CLOSE_WRITE | IN_MOVED_TO) >= 0);

    free(folder);
    return watches;
}

static bool
listen_for_moves(struct policy_watch *self)
{
    const struct policies *policies = self->policies;

    self->moves = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    self->stop = eventfd(0, EFD_CLOEXEC);
    return self->moves >= 0 && self->stop >= 0 &&
           watch_beside(self, policies->path) &&
           watch_beside(self, policies_environment_path(policies));
}

static void
give_up(struct policy_watch *self)
{
    if (self->moves >= 0)
        close(self->moves);
    if (self->stop >= 0)
        close(self->stop);
    free(self);
}

enum idem_status
policy_watch_start(struct policies *policies, struct idem_error *err)
{
    struct policy_watch *self = calloc(1, sizeof *self);

    IDEM_ASSERT(self);
    self->policies = policies;
    self->moves = self->stop = -1;
    if (!listen_for_moves(self) ||
        pthread_create(&self->thread, NULL, watch, self) != 0) {
        give_up(self);
        return idem_fail(
            err, IDEM_RESOURCE_EXHAUSTED, "%s cannot be watched: %s",
            policies->path ? policies->path : policies->environment,
            strerror(errno));
    }
    policies->watch = self;
    /* What moved before somebody listened. */
    read_again(policies);
    return IDEM_OK;
}

void
policy_watch_stop(struct policies *policies)
{
    struct policy_watch *self = policies->watch;

    if (!self)
        return;
    if (eventfd_write(self->stop, 1) == 0)
        pthread_join(self->thread, NULL);
    give_up(self);
    policies->watch = NULL;
}
