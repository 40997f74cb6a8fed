#ifndef PGBOUNCER_H
#define PGBOUNCER_H

struct pgbouncer;

/* A private PgBouncer 1.18 on loopback, in front of PostgreSQL's port, that
 * gives each transaction another of a few connections: what one leaves behind,
 * the next one meets. */
struct pgbouncer *pgbouncer_start(unsigned port);
void pgbouncer_free(struct pgbouncer *pgbouncer); /* NULL is fine */

const char *pgbouncer_conninfo(const struct pgbouncer *pgbouncer);

/* How many connections it has to PostgreSQL. */
#define PGBOUNCER_POOL 6

#endif
