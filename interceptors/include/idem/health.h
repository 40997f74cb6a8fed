#ifndef IDEM_HEALTH_H
#define IDEM_HEALTH_H

#include <idem/server.h>
#include <idem/store.h>

/* grpc.health.v1.Health: may calls be sent here? Standard in idem_server_open.
 *
 *   ""              the server: SERVING until it drains
 *   a service       NOT_SERVING when the server drains; also, if one of its
 *                   methods records, while the authority cannot be asked
 *   another name    NOT_FOUND
 *
 * Watch, a stream, says the same whenever it changes; of the server's end
 * within a tenth of a second, and is over with it.
 *
 * A server that drains goes on answering this one service, on the connections
 * that there are. The answer is out of memory, on the thread that read the
 * request, whatever the load: a thread of its own asks the authority now and
 * then. */

/* All zero is all defaults. */
struct idem_health_options {
    int64_t interval_ms; /* between two questions to the authority; 0: 1,000 */
    int64_t timeout_ms;  /* for its answer; 0: 1,000 */
    const struct idem_clock *clock; /* NULL: the system's */
};

IDEM_BEGIN_DECLS

/**
 * Register the service and begin to ask. Before start, as idem_server_register;
 * services may be registered before and afterwards.
 *
 * @param store    of the server's once, which outlives its calls; NULL: none
 * @param options  NULL is all defaults
 *
 * @retval IDEM_INVALID_ARGUMENT    a time is negative
 * @retval IDEM_RESOURCE_EXHAUSTED  no memory, or no thread
 */
IDEM_API enum idem_status
idem_health_add(struct idem_server *server, struct idem_store *store,
                const struct idem_health_options *options,
                struct idem_error *err) IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
