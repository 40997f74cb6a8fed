#ifndef IDEM_POSTGRES_H
#define IDEM_POSTGRES_H

#include <idem/store.h>

/* What a store cannot mend by itself: from the thread that opens it, or from
 * one of its own. */
typedef void idem_alarm_fn(void *with, const char *what);

/* Of the transactions that handlers write in. Beyond the first, a conflict
 * shows as one at any statement or at the commit, and the handler is run again.
 */
enum idem_isolation {
    IDEM_READ_COMMITTED,
    IDEM_REPEATABLE_READ,
    IDEM_SERIALIZABLE,
};

/* The authority of production: PostgreSQL 14 or later, the primary. */
struct idem_postgres_options {
    const char *conninfo; /* libpq's; several hosts allowed: the primary is
                           * taken. NULL: the environment's PG* */
    const char *pooled_conninfo;    /* where `connections` go instead: through a
                                     * pooler that gives a connection to each
                                     * transaction (PgBouncer, pool_mode =
                                     * transaction). NULL: as the others */
    unsigned connections;           /* for transactions and looks; 0: 16 */
    unsigned group_connections;     /* for LEASED work, beside those; 0: 2 */
    unsigned statement_connections; /* of transaction STATEMENT; 0: 2 */
    unsigned group_transactions; /* of interactive calls of methods with a group
                                  * at a time, on some of `connections`; 0: 2 */
    int64_t statement_timeout_ms;   /* cap of every statement; 0: 10,000 */
    int64_t idle_in_transaction_ms; /* a frozen owner loses its transaction;
                                     * 0: 10,000 */
    int64_t connect_timeout_ms;     /* 0: 5,000 */
    enum idem_isolation isolation;  /* 0: read committed */
    unsigned days_ahead;            /* partitions made ahead; 0: 2 */
    int64_t maintain_every_ms;      /* 0: 60,000; -1: never by itself */
    idem_alarm_fn *alarm; /* at open, when the database cannot be reached; once
                           * a turn of upkeep while tomorrow's partition is
                           * missing, which must not see midnight UTC. NULL: a
                           * line on stderr */
    void *alarm_with;
    const struct idem_clock *clock; /* NULL: the system's */
};

IDEM_BEGIN_DECLS

/* Does not wait for the database: while it is away, which is an alarm,
 * operations answer FAILED with UNAVAILABLE. When it is there and its schema is
 * older or newer than this library needs, that is an error here, and FAILED
 * with FAILED_PRECONDITION later.
 *
 * @retval IDEM_INVALID_ARGUMENT     conninfo, with libpq's words; isolation
 * @retval IDEM_FAILED_PRECONDITION  run `idemctl migrate`: says both versions;
 *                                   or each host is a standby, or read-only
 */
IDEM_API enum idem_status
idem_postgres_open(struct idem_store **store,
                   const struct idem_postgres_options *options,
                   struct idem_error *err) IDEM_MUST_CHECK;

/* Apply the numbered migrations that the database lacks, in one transaction
 * each, under a lock; make the partitions. Writes how many to *applied when not
 * NULL. What `idemctl migrate` runs. */
IDEM_API enum idem_status idem_postgres_migrate(const char *conninfo,
                                                unsigned *applied,
                                                struct idem_error *err)
    IDEM_MUST_CHECK;

/* One turn of upkeep, as a server's store does by itself: partitions are made
 * and dropped, opaque keys reaped. What `idemctl maintain` runs.
 *
 * @param days_ahead  0: 2
 *
 * @retval IDEM_FAILED_PRECONDITION  the schema is another library's; or
 *                                   tomorrow's partition is missing all the
 *                                   same, and from midnight UTC new keys would
 *                                   be refused */
IDEM_API enum idem_status idem_postgres_maintain(const char *conninfo,
                                                 unsigned days_ahead,
                                                 struct idem_error *err)
    IDEM_MUST_CHECK;

/* How many alarms a store has raised. Any thread. */
IDEM_API uint64_t idem_postgres_alarms(const struct idem_store *store);

/* Something that an operator should know. */
typedef void idem_finding_fn(void *with, bool ok, const char *what);

/**
 * Look whether a server can work on that database: its version, its schema,
 * the partitions of today and tomorrow (without which all new keys are
 * refused), settings that would break a promise. What `idemctl doctor` runs.
 *
 * @param tell  once for each thing that was looked at
 *
 * @retval IDEM_OK
 * @retval IDEM_FAILED_PRECONDITION  something is wrong; it was told
 * @retval IDEM_UNAVAILABLE          the database cannot be asked
 */
IDEM_API enum idem_status
idem_postgres_doctor(const char *conninfo, idem_finding_fn *tell, void *with,
                     struct idem_error *err) IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
