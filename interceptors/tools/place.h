#ifndef PLACE_H
#define PLACE_H

#include <idem/store.h>

/* Open the authority that the command line names, without its upkeep. One of
 * the two is NULL. */
enum idem_status place_open(struct idem_store **store, const char *postgres,
                            const char *sqlite, struct idem_error *err)
    IDEM_MUST_CHECK;

#endif
