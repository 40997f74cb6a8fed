#ifndef SETTLE_CALL_H
#define SETTLE_CALL_H

#include "suite_call.h"

/* What the tests of settlements on one authority share. */

/* A LEASED call with that key that is in doubt; clerk is the operator's ticket,
 * who has looked. */
void settle_leave_in_doubt(struct suite_call *owner, struct suite_call *clerk,
                           struct suite *suite, const char *key);

/* "it took effect", by anna, because of ticket 4711. */
enum idem_verdict settle_as_paid(struct suite_call *clerk);

#endif
