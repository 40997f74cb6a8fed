#ifndef TOTALS_H
#define TOTALS_H

#include "totals.idem.h"

/* Handlers of totals.proto: register them with a channel to the payments
 * service as user. */
extern const struct totals_handlers totals_handlers_of_payments;

#endif
