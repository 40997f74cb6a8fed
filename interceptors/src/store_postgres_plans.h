#ifndef STORE_POSTGRES_PLANS_H
#define STORE_POSTGRES_PLANS_H

#include "store_postgres_link.h"

struct pg_plan;
struct pg_values;

/* The statements of handlers that are prepared on a connection, by text and
 * types of parameters. At most PLANS_MAX; what comes later is sent as it is,
 * and so is what could not be prepared. Zeroed is empty. One thread. */
struct pg_plans {
    struct pg_plan *first; /* a hash */
    unsigned n;
    bool unnamed; /* nothing is prepared: it would not last */
};

#define PLANS_MAX 256

/* Say with which queries that statement is run: where it is not prepared yet,
 * the first of two prepares it. *plan receives what to tell of the first, or
 * NULL. Returns how many. */
unsigned pg_plans_run(struct pg_plans *plans, const char *sql,
                      const struct pg_values *values,
                      struct pg_query queries[2], struct pg_plan **plan);

/* What became of its first query. */
void pg_plan_prepared(struct pg_plan *plan, const struct pg_result *result);

/* The connection is gone, and they with it. */
void pg_plans_clear(struct pg_plans *plans);

#endif
