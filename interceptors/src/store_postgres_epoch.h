#ifndef STORE_POSTGRES_EPOCH_H
#define STORE_POSTGRES_EPOCH_H

#include "store_postgres.h"

/* In which epoch the authority answers. Every call asks for it several times,
 * so that it has a lock of its own: the sessions' threads fight for the store's
 * already. */

/* Under the store's lock, when a session has come up, with the epoch that it
 * was told (NULL: it was not), or has gone down. */
void pg_epoch_note(struct pg_store *postgres, const char *told);

/* Write it, "" while none is known, to IDEM_EPOCH_MAX bytes. Any thread. */
void pg_epoch_tell(struct pg_store *postgres, char *text);

#endif
