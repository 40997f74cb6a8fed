#ifndef ATTEMPT_PLAN_H
#define ATTEMPT_PLAN_H

#include "config.h"
#include "retry_rule.h"

/* When the attempts of one call begin, and which of them is its answer, when
 * they have a time of their own or fly beside one another (gRFC A6; client.md
 * 2.10). Retries and hedges are one plan. Pure: events come in with their time,
 * what is to be done goes out. Whoever drives it has a lock around it.
 *
 *   begin        one attempt is started
 *   due          the time of due_ns has come: the next one is started, or not
 *   ended        an attempt is over: another one follows, now or at due_ns; or
 *                others are waited for; or it is the last
 *   give_up      the caller gave up, or the deadline is over
 *
 * When it is over, nothing starts any more, and those that fly are dropped. */

struct plan_rules {
    const struct idem_retry_policy *retry;
    const struct hedging *hedging; /* no attempts in it: one after another */
    bool safe, keyed, too_large;
    enum idem_effect before; /* of the key, by attempts of an earlier plan */
    int64_t deadline_ns;     /* INT64_MAX: none */
    struct throttle *throttle;
    struct budget *budget;
    const struct idem_clock *clock;
};

struct plan {
    struct plan_rules rules;
    struct retry_progress progress;
    unsigned flying;
    unsigned hedges; /* places that are used up */
    unsigned number; /* of the next attempt, on the wire */
    int64_t due_ns;  /* INT64_MAX: nothing is planned */
    bool again;      /* what is planned is no hedge: one that was not sent, or
                      * that met the first call with the key */
    bool no_more;    /* no hedge any more; stop says why */
    bool over;
    bool settled; /* what became of the key is known */
    enum idem_stop stop;
};

/* What the driver does after an event. */
struct plan_step {
    bool start; /* one attempt, with this number; it flies */
    unsigned number;
    bool choose; /* the outcome that ended is the call's, unless another one is
                  * chosen later */
};

/* The first attempt is started by the driver, with number 1. */
void plan_begin(struct plan *plan, const struct plan_rules *rules,
                int64_t now_ns);
struct plan_step plan_due(struct plan *plan, int64_t now_ns);
struct plan_step plan_ended(struct plan *plan,
                            const struct idem_outcome *outcome, int64_t now_ns);
void plan_give_up(struct plan *plan);

#endif
