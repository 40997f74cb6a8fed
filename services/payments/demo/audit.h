#ifndef DEMO_AUDIT_H
#define DEMO_AUDIT_H

#include "plan.h"

/* What there should be and what there is. */
struct audit_sum {
    int64_t expected, found; /* money */
};

struct audit {
    struct audit_sum accounts; /* taken from the balances */
    struct audit_sum entries;  /* written in the entries */
    struct audit_sum provider; /* paid out, by the provider's log */
    unsigned missing;          /* calls that were told OK and left no trace */
    unsigned doubles;          /* effects beyond the first of a call */
    unsigned forbidden;        /* effects of calls that were told no */
    unsigned unresolved;       /* calls without a final answer */
    unsigned refused;          /* calls whose final answer is no */
};

/**
 * Count every unit, by the service's own reads and the provider's log.
 *
 * @param server  a server's address
 * @param log     the path of the provider's log
 *
 * False: it cannot be read; says why to stderr.
 */
bool audit_make(struct audit *audit, const struct plan *plan,
                const char *server, const char *log);

/* Nothing is missing, double, forbidden or unresolved, and all sums agree. */
bool audit_holds(const struct audit *audit);

#endif
