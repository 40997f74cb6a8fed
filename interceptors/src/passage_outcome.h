#ifndef PASSAGE_OUTCOME_H
#define PASSAGE_OUTCOME_H

#include "passage.h"

/* What the outcome of a handler asks for. */

/* It was called, whatever it made of it. */
bool outcome_was_begun(const struct idem_call *call);

/* By the method's policy: recorded, else released. */
bool outcome_is_recorded(const struct idem_call *call);

/* Of a TRANSACTION, a defect of the handler's and no state of the world. */
bool outcome_is_bad(const struct passage *passage);

/* A dead letter: it ends badly whenever it runs, and is not run again. */
bool outcome_is_exhausted(const struct passage *passage);

/* A reply over what the method stores becomes RESOURCE_EXHAUSTED when it says
 * FAIL. TRANSACTION: nothing happened. LEASED: the effect stands, so this
 * answer is the record, and whoever repeats the key is told the same. */
void outcome_limit_reply(struct passage *passage);

/* Fill the ticket's answer with what is recorded of the call. False: no memory,
 * which is the outcome then. */
bool outcome_answer(struct passage *passage) IDEM_MUST_CHECK;

#endif
