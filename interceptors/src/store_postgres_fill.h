#ifndef STORE_POSTGRES_FILL_H
#define STORE_POSTGRES_FILL_H

#include <idem/status.h>

struct pg_link;

/* How full the pages of a day's partition are made when records are inserted
 * (PostgreSQL's fillfactor, percent). A LEASED record is inserted by its claim
 * and grows when it is completed, which is cheap (HOT) when the page has room;
 * a record of TRANSACTION is inserted whole and never changed, and room beside
 * it is pages that are made for nothing (decision 52). */

/* Of a day that is made, before its use is known: room for the completions of
 * LEASED calls whose replies have up to 256 bytes. */
#define PG_FILL_NEW 33

/* Give today and the days ahead what the use of the newest day with some
 * records asks for: all of the page, or room. Within a transaction; changes
 * nothing while too little is known. ABORTED: somebody else is at a partition
 * (autovacuum, an operator), for longer than the transaction waits. */
enum idem_status pg_fill_days(struct pg_link *link, struct idem_error *err)
    IDEM_MUST_CHECK;

#endif
