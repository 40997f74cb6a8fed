#ifndef IDEM_SQLITE_H
#define IDEM_SQLITE_H

#include <idem/store.h>

/* The embedded authority: one file, one process, durable (WAL, synchronous
 * FULL). The same guarantees as PostgreSQL on one machine. */
struct idem_sqlite_options {
    const char *path;    /* of the database file; made when absent */
    const char *schema;  /* SQL of the service's own tables, run once at open,
                          * "CREATE TABLE IF NOT EXISTS …"; NULL: none */
    int64_t busy_ms;     /* wait for another process's lock; 0: 5,000 */
    unsigned days_ahead; /* partitions made ahead; 0: 2 */
    int64_t maintain_every_ms;      /* 0: 60,000; -1: never by itself */
    const struct idem_clock *clock; /* NULL: the system's */
};

IDEM_BEGIN_DECLS

/* Opens the file, applies the migrations that it lacks, makes the partitions.
 *
 * @retval IDEM_INVALID_ARGUMENT     no path
 * @retval IDEM_INTERNAL             the schema is not SQL: says why
 * @retval IDEM_UNAVAILABLE          the file cannot be opened: says why
 * @retval IDEM_FAILED_PRECONDITION  its schema is newer than this library
 */
IDEM_API enum idem_status
idem_sqlite_open(struct idem_store **store,
                 const struct idem_sqlite_options *options,
                 struct idem_error *err) IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
