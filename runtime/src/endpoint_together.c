#include "burst.h"
#include "server_inside.h"

/* Answers that leave in one write, and calls that are pushed in one go. */

void
endpoint_let_go(void *kept)
{
    struct connection *connection = kept;

    connection_flush(connection);
    connection_unref(connection);
}

/* --- Answers that leave together --- */

#define TOGETHER_MAX 32 /* connections; one more is flushed at once */

static _Thread_local struct {
    bool on;
    unsigned n;
    struct connection *connections[TOGETHER_MAX]; /* with a reference each */
} together;

static void
flush_later(struct connection *connection)
{
    for (unsigned i = together.n; i-- > 0;)
        if (together.connections[i] == connection)
            return;
    if (together.n == TOGETHER_MAX) {
        connection_flush(connection);
        return;
    }
    connection_ref(connection);
    together.connections[together.n++] = connection;
}

/* A worker keeps the connection that it has put frames in and not flushed. Who
 * lets go of it meanwhile flushes what is there by then. */
static void
flush_on_worker(struct connection *connection)
{
    struct connection *before;

    if (workers_kept() == connection)
        return;
    connection_ref(connection);
    before = workers_keep(connection);
    if (before)
        endpoint_let_go(before);
}

void
endpoint_flush(struct connection *connection)
{
    if (together.on)
        flush_later(connection);
    else if (workers_here())
        flush_on_worker(connection);
    else
        connection_flush(connection);
}

/* --- OPENs that came together --- */

/* Jobs; then they are pushed before the frames end, so that a worker begins
 * while the rest is read. A push costs a lock, and a wake-up when none works.
 */
#define GATHERED_MAX 8

static _Thread_local struct {
    struct peer *peer; /* whose; NULL: nothing is gathered now */
    struct workers *workers;
    struct job *first, *last;
    unsigned count;
} gathered;

void
endpoint_gather(struct peer *peer)
{
    gathered.peer = peer;
}

void
endpoint_push_gathered(void)
{
    struct job *job = gathered.first, *next;

    if (!job)
        return;
    gathered.first = NULL;
    gathered.count = 0;
    for (job = workers_push_all(gathered.workers, job); job; job = next) {
        struct server_call *call = server_call_of_job(job);

        next = job->next;
        endpoint_refuse_full(call);
        idem_call_resume(&call->call.base, IDEM_ANSWER);
    }
}

bool
endpoint_gathers(const struct peer *peer)
{
    return together.on || gathered.peer == peer;
}

void
endpoint_gather_job(struct workers *workers, struct job *job)
{
    if (gathered.first && gathered.workers != workers)
        endpoint_push_gathered();
    job->next = NULL;
    if (gathered.first)
        gathered.last->next = job;
    else
        gathered.first = job;
    gathered.last = job;
    gathered.workers = workers;
    if (++gathered.count == GATHERED_MAX)
        endpoint_push_gathered();
}

/* Jobs first: one that finds no room is answered here. */
static void
leave_together(void)
{
    endpoint_push_gathered();
    together.on = false;
    while (together.n > 0)
        endpoint_let_go(together.connections[--together.n]);
}

void
idem_call_resume_all(void (*resume_all)(void *with), void *with)
{
    bool nested = together.on;

    together.on = true;
    burst_begin();
    resume_all(with);
    if (!nested)
        leave_together();
    burst_end();
}

/* Behind the burst: what its handlers put off is not put off for ever when one
 * of them blocks. */
void
idem_call_resume_all_here(void (*resume_all)(void *with), void *with,
                          struct idem_host *host)
{
    IDEM_ASSERT(!together.on);
    workers_lend(host);
    idem_call_resume_all(resume_all, with);
    workers_run_lent();
}
