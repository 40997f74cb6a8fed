#ifndef ONCE_ANSWER_H
#define ONCE_ANSWER_H

#include <idem/call.h>
#include <idem/store.h>

/* Between a call's outcome and the answer that is recorded of it. */

/* What a call that has ended will be remembered as. The views are of the call
 * and its arena.
 *
 * @retval IDEM_RESOURCE_EXHAUSTED  memory
 */
enum idem_status answer_of_call(struct idem_answer *answer,
                                struct idem_call *call, struct idem_error *err)
    IDEM_MUST_CHECK;

/* The same, for a reply over the method's max_reply: its size and hash stand
 * for it (DIGEST), and whoever repeats the key is told ALREADY_EXISTS. */
enum idem_status answer_without_reply(struct idem_answer *answer,
                                      struct idem_call *call,
                                      struct idem_error *err) IDEM_MUST_CHECK;

/* End the call with a recorded answer: REPLAYED, final, the same bytes. The
 * answer's views must live as long as the call. */
void answer_replay(struct idem_call *call, const struct idem_answer *answer);

#endif
