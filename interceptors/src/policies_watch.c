#include "policies.h"

/* Reads the files again when they change. */

static void
read_again(void *with)
{
    (void)policies_load(with, NULL, true, NULL);
}

enum idem_status
policy_watch_start(struct policies *policies, struct idem_error *err)
{
    const char *const paths[] = {policies->path,
                                 policies_environment_path(policies)};
    enum idem_status status = idem_watch_new(&policies->watch, paths,
                                             sizeof paths / sizeof *paths, err);

    if (status != IDEM_OK)
        return status;
    /* What moved before somebody looked. */
    read_again(policies);
    return idem_watch_start(policies->watch, read_again, policies, err);
}

void
policy_watch_stop(struct policies *policies)
{
    idem_watch_free(policies->watch);
    policies->watch = NULL;
}
