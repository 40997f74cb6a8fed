#include "passage.h"

#include "once_epoch.h"
#include "once_verdict.h"

#include <string.h>

static enum idem_ask_redis
policy(const struct passage *passage)
{
    return passage->once->shield ? passage->call->method->ask_redis
                                 : IDEM_ASK_REDIS_NEVER;
}

static bool
wants_look(const struct passage *passage)
{
    if (passage->looked || passage->up)
        return false;
    return policy(passage) == IDEM_ASK_REDIS_ALWAYS ||
           (policy(passage) == IDEM_ASK_REDIS_REPEATS &&
            passage->call->attempt > 1);
}

/* Redis may only say no: whatever is not a verified answer goes on. */
static void
looked(struct idem_shield_look *look)
{
    struct passage *passage = CONTAINER(struct passage, look, look);

    if (look->verdict == IDEM_VERDICT_DONE) {
        once_count(passage->once, ONCE_SHIELDED);
        passage_remember(passage, &look->answer);
        passage_replay(passage, &look->answer);
    } else if (look->verdict == IDEM_VERDICT_REUSED) {
        verdict_reused_elsewhere(passage);
        passage_leave(passage, NULL);
    } else
        passage_ask_store(passage);
}

bool
passage_look(struct passage *passage)
{
    const struct once *once = passage->once;

    if (!wants_look(passage))
        return false;
    if (once->store->ops->epoch &&
        !once_epoch_shown(once, passage->clock, passage->epoch))
        return false;
    idem_shield_set_epoch(once->shield, passage->epoch);
    passage->looked = true;
    passage->look = (struct idem_shield_look){
        .id = &passage->ticket.id,
        .fingerprint = &passage->ticket.fingerprint,
        .arena = passage->call->arena,
        .done = looked,
    };
    idem_shield_look(once->shield, &passage->look);
    return true;
}

void
passage_note_epoch(struct passage *passage)
{
    passage->noted_ns = passage->clock->monotonic_ns(passage->clock);
    (void)once_epoch(passage->once, passage->epoch);
}

/* UNKNOWN: the connection was lost. */
void
passage_heard(struct passage *passage)
{
    enum idem_verdict verdict = passage->ticket.verdict;

    if (verdict != IDEM_VERDICT_FAILED && verdict != IDEM_VERDICT_UNKNOWN)
        once_heard(passage->once, passage->noted_ns);
}

/* An answer of before a fail-over is not an answer of the authority that is
 * there now (semantics.md 4.5, step 3). */
void
passage_fill(struct passage *passage, const struct idem_answer *answer)
{
    char epoch[IDEM_EPOCH_MAX];

    if (policy(passage) == IDEM_ASK_REDIS_NEVER)
        return;
    (void)once_epoch(passage->once, epoch);
    if (strcmp(epoch, passage->epoch) != 0)
        return;
    idem_shield_set_epoch(passage->once->shield, epoch);
    idem_shield_fill(passage->once->shield, &passage->ticket.id,
                     &passage->ticket.fingerprint, answer,
                     passage_ends_ms(passage, answer->first_at_ms));
}
