#ifndef AUDIT_H
#define AUDIT_H

#include <idem/interceptor.h>

#include <stdio.h>

/* A line for each call, when it is over: an example of an interceptor that sees
 * the answer, the same on a channel and on a server.
 *
 *    payments.v1.Payments/Charge acme OK COMMITTED 1 1834us
 *
 * method, tenant ("-" without one), status, effect, attempt, time. Lines are
 * whole, whatever thread writes them. The file must outlive the chain. NULL:
 * out of memory. */
struct idem_interceptor *audit_new(FILE *file);

#endif
