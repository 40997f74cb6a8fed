#ifndef STORE_POSTGRES_MAINTAIN_H
#define STORE_POSTGRES_MAINTAIN_H

#include "store_postgres_link.h"

/* Upkeep, on a connection of its own. Blocks. One process at a time does it;
 * the others find nothing to do. */

#define PG_MAINTAIN_LOCK INT64_C(0x6964656d6d61696e) /* "idemmain" */
#define PG_NOW_MS "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
#define PG_DAY_NAME_MAX 16

/* Make the partitions of today and days_ahead, fill their pages as they are
 * used, drop those whose windows are over, reap opaque keys in bounded batches.
 */
enum idem_status pg_maintain(const struct pg_link_options *options,
                             unsigned days_ahead, struct idem_error *err);

/* Only the partitions. */
enum idem_status pg_make_days(struct pg_link *link, unsigned days_ahead,
                              struct idem_error *err);

/* "20261129" of a day since 1970 UTC. */
void pg_name_day(char *text, size_t size, int64_t day);

/* The schema that the database has; 0: none. */
enum idem_status pg_schema_version(struct pg_link *link, int64_t *version,
                                   struct idem_error *err) IDEM_MUST_CHECK;

/* For a tool: the system's clock, patient. */
struct pg_link_options pg_tool_options(const char *conninfo);

/* Run one text statement, a bounded time. */
enum idem_status pg_do(struct pg_link *link, const char *sql,
                       struct idem_error *err) IDEM_MUST_CHECK;

/* As pg_do with numbers as $1 …; *number receives the first value of the first
 * row, or how many rows were changed. */
enum idem_status pg_ask(struct pg_link *link, const char *sql, int n,
                        const int64_t *values, int64_t *number,
                        struct idem_error *err) IDEM_MUST_CHECK;

#endif
