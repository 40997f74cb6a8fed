#include "worker_inside.h"

#include <idem/call.h>

/* Jobs on a thread that is no sockets' and lends itself: it resumes calls, and
 * runs the short jobs that come of it (decision 55). One a pool at a time, so
 * that handlers that block keep no more of such threads than one. */

static _Thread_local struct {
    struct idem_host *host; /* NULL: this thread does not lend itself */
    struct worker *guest;   /* whom it has; NULL: none yet */
} lent;

void
workers_lend(struct idem_host *host)
{
    lent.host = host;
    lent.guest = NULL;
}

struct worker *
workers_hosted(struct workers *pool)
{
    struct worker *guest = &pool->guest[HOSTED];

    if (lent.guest || !lent.host)
        return lent.guest == guest ? guest : NULL;
    if (guest->host)
        return NULL;
    guest->host = lent.host;
    guest->told = false;
    pool->guests++;
    lent.guest = guest;
    return guest;
}

void
workers_run_lent(void)
{
    struct worker *guest = lent.guest;

    workers_lend(NULL);
    if (guest)
        workers_visit(guest);
}

bool
workers_host_is_stuck(const struct workers *pool, int64_t now_ns)
{
    const struct worker *guest = &pool->guest[HOSTED];

    return guest->host && guest->works && !guest->told &&
           now_ns - guest->since_ns > PATIENCE_NS;
}

void
workers_tell_host(struct worker *guest)
{
    struct workers *pool = guest->pool;
    struct idem_host *host = NULL;

    pthread_mutex_lock(&pool->lock);
    if (!guest->told)
        host = guest->host;
    guest->told = true;
    pthread_mutex_unlock(&pool->lock);
    if (host)
        host->stuck(host);
}
