#ifndef STORE_POSTGRES_DROP_H
#define STORE_POSTGRES_DROP_H

#include "store_postgres_maintain.h"

/* Close the days whose longest window is over, and drop their partitions: each
 * is closed by a commit, detached while calls go on, and then dropped. What was
 * broken off is gone on with the next time; a transaction that is open for long
 * puts it off. Nothing to do while another process is at it. */
enum idem_status pg_drop_over(struct pg_link *link, struct idem_error *err)
    IDEM_MUST_CHECK;

#endif
