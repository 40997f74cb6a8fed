#ifndef RETRY_STORY_H
#define RETRY_STORY_H

#include "support.h"

#include "fake_clock.h"
#include "retry_rule.h"

#include <idem/reason.h>

#define MS INT64_C(1000000)
#define BIT(status) (1u << IDEM_##status)

/* A call whose attempts a test ends one after another. */
struct story {
    struct idem_method method;
    struct retry_progress progress;
    struct retry_question question;
    struct idem_outcome outcome;
};
int story_set_up(void **state);
int story_tear_down(void **state);
void story_begin(struct story *story, unsigned max_attempts,
                 uint32_t retryable);

/* An attempt ends so; what follows? */
struct retry_answer story_end(struct story *story, enum idem_status status,
                              enum idem_effect effect);
struct retry_answer story_end_later(struct story *story,
                                    enum idem_status status,
                                    enum idem_effect effect,
                                    int64_t retry_after_ms);
void assert_stop(struct retry_answer answer, enum idem_stop stop);

/* As far as the jitter goes. */
void assert_pause_around(struct retry_answer answer, int64_t ms);

#endif
