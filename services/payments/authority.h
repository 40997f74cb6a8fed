#ifndef PAYMENTS_AUTHORITY_H
#define PAYMENTS_AUTHORITY_H

#include <idem/store.h>

#include "server_options.h"

struct idem_shield;

/* The tables of payments: schema.sql as text. */
extern const char payments_schema[];

/* Open what decides whether a call may run, as the options say, and the shield
 * in front of it when there is one (else NULL). */
enum idem_status authority_open(struct idem_store **store,
                                struct idem_shield **shield,
                                const struct server_options *options,
                                struct idem_error *err) IDEM_MUST_CHECK;

#endif
