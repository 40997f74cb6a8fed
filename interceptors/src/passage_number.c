#include "passage.h"

#include <idem/reason.h>

#include <stdlib.h>

/* A session's calls are numbered, and each says up to which number its client
 * has the answers (semantics.md 3.16). */

#define ACKNOWLEDGE_EVERY 16 /* calls; the rest of the words is not used */

/* --- The client's word --- */

struct word {
    struct idem_ticket ticket; /* first: a ticket is its word */
    struct once *once;
    void *texts;
};

static void
word_free(struct word *word)
{
    struct once *once = word->once;

    free(word->texts);
    free(word);
    errands_end(&once->errands);
}

/* Whatever came of it: a later one says more. */
static void
taken(struct idem_ticket *ticket)
{
    word_free((struct word *)ticket);
}

void
passage_take_word(struct passage *passage)
{
    struct once *once = passage->once;
    uint64_t ack_below = passage->call->ack_below;
    struct word *word;

    if (ack_below == 0 ||
        passage->ticket.id.key.sequence % ACKNOWLEDGE_EVERY != 0 ||
        !errands_begin(&once->errands))
        return;
    word = calloc(1, sizeof(*word));
    if (!word ||
        !errand_ticket(&word->ticket, &passage->ticket, &word->texts)) {
        free(word);
        errands_end(&once->errands);
        return;
    }
    word->once = once;
    word->ticket.ack_below = ack_below;
    word->ticket.done = taken;
    once_count(once, ONCE_CLAIMS);
    once->store->ops->acknowledge(once->store, &word->ticket);
}

/* --- The call's own number --- */

static void
refuse_stale(struct passage *passage)
{
    idem_call_fail(passage->call, IDEM_FAILED_PRECONDITION, IDEM_EFFECT_REFUSED,
                   IDEM_KEY_STALE,
                   "call %lld of its session: the client has told that it has "
                   "the answer",
                   (long long)passage->ticket.id.key.sequence);
    passage->call->outcome.final = true;
    once_count(passage->once, ONCE_REFUSED);
}

static void
given_back(struct idem_ticket *ticket)
{
    passage_leave((struct passage *)ticket, NULL);
}

/* The outcome is in the call; the claim is not needed. */
static void
give_back(struct passage *passage)
{
    struct idem_store *store = passage->once->store;
    struct idem_ticket *ticket = &passage->ticket;

    ticket->done = given_back;
    once_count(passage->once, ONCE_CLAIMS);
    if (ticket->probe)
        store->ops->doubt(store, ticket);
    else
        store->ops->release(store, ticket);
}

static void
checked(struct idem_ticket *ticket)
{
    struct passage *passage = (struct passage *)ticket;

    if (ticket->verdict == IDEM_VERDICT_MINE) {
        passage->numbered = true;
        passage_take_word(passage);
        passage_judge(passage);
        return;
    }
    if (ticket->verdict == IDEM_VERDICT_EXPIRED)
        refuse_stale(passage);
    else {
        once_count(passage->once, ONCE_STORE_FAILED);
        idem_call_fail(passage->call, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED,
                       IDEM_STORE_AWAY, "%s", ticket->error.message);
    }
    give_back(passage);
}

void
passage_check_number(struct passage *passage)
{
    struct idem_store *store = passage->once->store;
    struct idem_ticket *ticket = &passage->ticket;

    ticket->done = checked;
    once_count(passage->once, ONCE_CLAIMS);
    store->ops->watermark(store, ticket);
}

/* --- STATEMENT: the store has looked at the number itself --- */

static void
told_why(struct idem_ticket *ticket)
{
    struct passage *passage = (struct passage *)ticket;

    if (ticket->verdict == IDEM_VERDICT_EXPIRED) {
        refuse_stale(passage);
        passage_leave(passage, NULL);
        return;
    }
    if (ticket->verdict == IDEM_VERDICT_MINE)
        ticket->verdict = IDEM_VERDICT_EXPIRED;
    passage_judge(passage);
}

void
passage_ask_why_expired(struct passage *passage)
{
    struct idem_store *store = passage->once->store;

    passage->ticket.done = told_why;
    once_count(passage->once, ONCE_CLAIMS);
    store->ops->watermark(store, &passage->ticket);
}
