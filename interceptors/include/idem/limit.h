#ifndef IDEM_LIMIT_H
#define IDEM_LIMIT_H

#include <idem/interceptor.h>
#include <idem/method.h>

/* The server's interceptor that turns away what is too much, before anything is
 * recorded of it. Standard in idem_server_open.
 *
 *   rate      of one principal (the verified identity; without one, the host
 *             that it calls from) and method: RESOURCE_EXHAUSTED RATE_LIMITED,
 *             with the exact time at which it may come again
 *   permits   how many calls may be under way at once, of the server and of a
 *             method. Those that find none wait in a line of bounded length;
 *             over it: RESOURCE_EXHAUSTED OVERLOADED, with a time to come back
 *
 * Both are REFUSED: the key may be used again.
 *
 * Who needs a permit: a call of a method that records, from just before the
 * authority is asked until its answer is recorded. So a duplicate that waits
 * for the first call of its key has none, nor has one that is answered out of
 * memory or Redis. A call of dispatch POOL that records nothing, from here to
 * its answer. One of dispatch INLINE or ASYNC holds no thread: it needs a
 * permit only when its method states max_in_flight.
 *
 * A duplicate whose first call ended without an answer takes that one's permit
 * over, so that for a moment one more may be out than the limit says. */

/* All zero is all defaults. */
struct idem_limit_options {
    unsigned max_in_flight;  /* permits of the server; 0: 10,000. Of
                              * idem_server_open, which is at most: max_queued,
                              * so that a call that has its claim always finds
                              * room before the workers */
    unsigned max_waiting;    /* calls in line, of all methods; 0: 1,000 */
    unsigned retry_after_ms; /* who is turned away is asked to wait so long, 50
                              * % more or less; 0: 100 */
    struct idem_limit_policy method; /* of methods that state none themselves:
                                      * each field that is 0 there */
    unsigned max_principals; /* rates that are remembered, the last used; 0:
                              * 65,536 */

    /* The number of permits follows what the server can do (decision 33): down
     * by a tenth when a call is late, up by one when as many as there are were
     * in time, between min_in_flight and max_in_flight. */
    bool adaptive;
    unsigned min_in_flight; /* 0: 8 */
    int64_t late_ms; /* a call that held its permit for longer is late; 0: half
                      * of the time that its deadline left it */
};

struct idem_limit_counts {
    unsigned permits;   /* that there are now */
    unsigned in_flight; /* of them, out */
    unsigned waiting;
    uint64_t shed;         /* OVERLOADED */
    uint64_t rate_limited; /* RATE_LIMITED */
};

IDEM_BEGIN_DECLS

/**
 * @param out      receives the interceptor; the server it is added to owns it
 * @param options  copied; NULL is all defaults
 *
 * @retval IDEM_INVALID_ARGUMENT  min_in_flight is over max_in_flight, late_ms
 * is negative, or a rate has no time
 *
 * Give it to the once of the same server (idem_once_options.limit): without
 * that, calls that record take their permits here, also those that only wait.
 */
IDEM_API enum idem_status
idem_limit_new(struct idem_interceptor **out,
               const struct idem_limit_options *options, struct idem_error *err)
    IDEM_MUST_CHECK;

/* A copy of the counts; from any thread. */
IDEM_API void idem_limit_counts(const struct idem_interceptor *limit,
                                struct idem_limit_counts *counts);

IDEM_END_DECLS

#endif
