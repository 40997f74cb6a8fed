#include "passage.h"

#include "memory.h"
#include "once_answer.h"
#include "once_epoch.h"
#include "once_verdict.h"
#include "shared_answer.h"

#include <idem/reason.h>

#include <string.h>

#define DAY_MS INT64_C(86400000)

static bool
is_wanted(const struct passage *passage)
{
    enum idem_ask_redis policy = passage->call->method->ask_redis;

    return passage->once->memory && policy != IDEM_ASK_REDIS_NEVER;
}

/* As Redis: on repeats, or always. What it saves is the same. */
static bool
is_asked(const struct passage *passage)
{
    const struct idem_call *call = passage->call;

    return is_wanted(passage) &&
           (call->attempt > 1 ||
            call->method->ask_redis == IDEM_ASK_REDIS_ALWAYS);
}

/* What is known says how the call ends. */
static void
take_fact(struct passage *passage, enum idem_verdict verdict,
          const struct memory_fact *fact)
{
    struct idem_ticket *ticket = &passage->ticket;

    ticket->verdict = verdict;
    passage->shared = fact->answer;
    once_count(passage->once, ONCE_REMEMBERED);
    if (verdict == IDEM_VERDICT_DONE) {
        answer_replay(passage->call, &fact->answer->answer);
        once_count(passage->once, ONCE_REPLAYED);
        return;
    }
    if (verdict == IDEM_VERDICT_REUSED) {
        ticket->recorded = fact->fingerprint;
        ticket->first_at_ms = fact->answer->answer.first_at_ms;
    }
    verdict_refuse(passage);
}

/* Other bytes may be the same request: of those that are not, memory is asked
 * once more with all that there is to compare. */
static enum idem_verdict
recall(struct passage *passage, const struct memory_question *question,
       struct memory_fact *fact)
{
    struct memory *memory = passage->once->memory;
    enum idem_verdict verdict = memory_recall(memory, question, fact);

    if (verdict != IDEM_VERDICT_REUSED)
        return verdict;
    shared_answer_unref(fact->answer);
    passage_canonicalise(passage);
    return memory_recall(memory, question, fact);
}

bool
passage_recall(struct passage *passage)
{
    const struct once *once = passage->once;
    char epoch[IDEM_EPOCH_MAX];
    struct memory_question question = {
        .digest = passage->ticket.id.digest,
        .epoch = epoch,
        .fingerprint = &passage->ticket.fingerprint,
    };
    struct memory_fact fact;
    enum idem_verdict verdict;

    if (!is_asked(passage) || !once_epoch_shown(once, passage->clock, epoch))
        return false;
    question.wall_ms = passage->clock->wall_ms(passage->clock);
    verdict = recall(passage, &question, &fact);
    if (verdict == IDEM_VERDICT_ABSENT)
        return false;
    take_fact(passage, verdict, &fact);
    return true;
}

int64_t
passage_ends_ms(const struct passage *passage, int64_t first_at_ms)
{
    const struct idem_key *key = &passage->ticket.id.key;
    int64_t window_ms = passage->ticket.window_ms;

    if (key->minted)
        return key->minted_ms + key->window_ms;
    return first_at_ms + (window_ms ? window_ms : DAY_MS);
}

/* A reply that was not kept may be made anew: not by us. */
static bool
was_dropped(const struct idem_answer *answer)
{
    return idem_bytes_equal(answer->reason, idem_bytes_of(IDEM_ANSWER_DROPPED));
}

/* The authority said or took this, in the epoch that was noted before it was
 * asked and is still the one. */
static void
keep(struct passage *passage, struct memory_fact *fact)
{
    const struct idem_ticket *ticket = &passage->ticket;
    const struct idem_clock *clock = passage->once->clock;

    if (!is_wanted(passage) || !once_epoch(passage->once, fact->epoch) ||
        strcmp(fact->epoch, passage->epoch) != 0)
        return;
    memcpy(fact->digest, ticket->id.digest, sizeof(fact->digest));
    fact->fingerprint = ticket->fingerprint;
    fact->until_ms =
        passage_ends_ms(passage, fact->answer ? fact->answer->answer.first_at_ms
                                              : clock->wall_ms(clock));
    memory_keep(passage->once->memory, fact);
}

void
passage_remember(struct passage *passage, const struct idem_answer *answer)
{
    struct memory_fact fact = {.verdict = IDEM_VERDICT_DONE};

    if (!is_wanted(passage) || was_dropped(answer))
        return;
    fact.answer = shared_answer_new(answer);
    if (!fact.answer)
        return; /* it is only a shorter way */
    keep(passage, &fact);
    shared_answer_unref(fact.answer);
}

/* Of one that an execution had before there is more to say than a fact holds.
 */
void
passage_remember_abandoned(struct passage *passage)
{
    struct memory_fact fact = {.verdict = IDEM_VERDICT_ABANDONED};

    if (passage->ticket.first_at_ms == 0)
        keep(passage, &fact);
}
