#include "store_postgres_plans.h"

#include "store_postgres_values.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* What became of preparing it. */
enum plan_state {
    PLAN_NEW,
    PLAN_READY,   /* or on its way, in front of whoever uses it */
    PLAN_REFUSED, /* run as it is, and say why */
};

/* A text with other types of parameters is another statement: a prefix of one
 * character a parameter tells them apart. */
struct pg_plan {
    enum plan_state state;
    char name[32];
    UT_hash_handle hh;
    char key[]; /* types, a blank, the text */
};

static char *
key_of(const char *sql, const struct pg_values *values, size_t *size)
{
    size_t n = (size_t)values->n, length = strlen(sql);
    char *key = malloc(n + 1 + length + 1);

    if (!key)
        return NULL;
    for (size_t i = 0; i < n; i++)
        key[i] = values->types[i] ? 'b' : 't';
    key[n] = ' ';
    memcpy(key + n + 1, sql, length + 1);
    *size = n + 1 + length;
    return key;
}

static struct pg_plan *
add(struct pg_plans *plans, const char *key, size_t size)
{
    struct pg_plan *plan =
        plans->n < PLANS_MAX ? malloc(sizeof(*plan) + size + 1) : NULL;

    if (!plan)
        return NULL;
    plan->state = PLAN_NEW;
    memcpy(plan->key, key, size + 1);
    snprintf(plan->name, sizeof(plan->name), "idem_handler_%u", plans->n++);
    HASH_ADD(hh, plans->first, key, size, plan);
    return plan;
}

/* NULL: there is no room for one more. */
static struct pg_plan *
find(struct pg_plans *plans, const char *sql, const struct pg_values *values)
{
    struct pg_plan *plan = NULL;
    size_t size;
    char *key = key_of(sql, values, &size);

    if (key)
        HASH_FIND(hh, plans->first, key, size, plan);
    if (key && !plan)
        plan = add(plans, key, size);
    free(key);
    return plan;
}

unsigned
pg_plans_run(struct pg_plans *plans, const char *sql,
             const struct pg_values *values, struct pg_query queries[2],
             struct pg_plan **plan)
{
    struct pg_plan *found = plans->unnamed ? NULL : find(plans, sql, values);
    unsigned n = 0;

    *plan = NULL;
    if (!found || found->state == PLAN_REFUSED) {
        queries[n++] = (struct pg_query){.text = sql, .values = values};
        return n;
    }
    if (found->state == PLAN_NEW) {
        queries[n++] = (struct pg_query){
            .name = found->name, .text = sql, .values = values};
        found->state = PLAN_READY;
        *plan = found;
    }
    queries[n++] = (struct pg_query){.name = found->name, .values = values};
    return n;
}

/* One that was not reached, because another had failed, is as it was; class 42
 * is a text that is wrong. */
void
pg_plan_prepared(struct pg_plan *plan, const struct pg_result *result)
{
    const char *sqlstate =
        result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;

    if (PQresultStatus(result) == PGRES_COMMAND_OK)
        return;
    plan->state =
        sqlstate && strncmp(sqlstate, "42", 2) == 0 ? PLAN_REFUSED : PLAN_NEW;
}

void
pg_plans_clear(struct pg_plans *plans)
{
    struct pg_plan *plan, *next;

    HASH_ITER (hh, plans->first, plan, next) {
        HASH_DELETE(hh, plans->first, plan);
        free(plan);
    }
    plans->n = 0;
}
