#ifndef LEDGER_ANSWER_H
#define LEDGER_ANSWER_H

#include <idem/store.h>

#include "idem/v1/ledger.idem.h"

/* What a look or an abandon of the store is in words of idem.v1.Ledger. FAILED
 * is the handler's failure. */
enum idem_status ledger_answer(struct idem_context *context,
                               const struct idem_ticket *ticket,
                               idem_ledger_resolution *reply);

#endif
