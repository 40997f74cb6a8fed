#ifndef PAYMENTS_HANDLERS_H
#define PAYMENTS_HANDLERS_H

#include "payments.idem.h"

/* What the handlers know beside the call: given to payments_register. */
struct payments_house {
    const char *provider; /* the path of the provider's socket; NULL: none */
};

extern const struct payments_handlers payments_house_handlers;

#endif
