#ifndef IDEM_LEDGER_H
#define IDEM_LEDGER_H

#include <idem/server.h>
#include <idem/store.h>

IDEM_BEGIN_DECLS

/* Let the server answer idem.v1.Ledger: what became of a key, and that it never
 * runs (idl/idem/v1/ledger.proto). idem_server_open does it; this is for a
 * chain of one's own.
 *
 * Whoever may call the ledger may read the recorded answers of its own tenant's
 * keys, if it knows them.
 *
 * @param store  the once interceptor's; outlives the server's calls
 *
 * @retval IDEM_ALREADY_EXISTS       the server has it
 * @retval IDEM_FAILED_PRECONDITION  the server runs
 */
IDEM_API enum idem_status idem_ledger_add(struct idem_server *server,
                                          struct idem_store *store,
                                          struct idem_error *err)
    IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
