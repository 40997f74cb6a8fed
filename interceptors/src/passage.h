#ifndef PASSAGE_H
#define PASSAGE_H

#include "once.h"
#include "permits.h"
#include "tx.h"

struct renewal;

/* A call's way through once, from its key to its answer.
 *
 *   request   identify ─ enter ─┬─ wait beside the first call of the key
 *                               └─ ask: Redis, then the store's claim
 *   judge     MINE: let through │ DONE: replay │ RUNNING: nap, ask again
 *             the rest: refuse
 *   reply     finish: complete, release or doubt; then the answer, or ask again
 *
 * With transaction STATEMENT the handler's first half runs in front of the
 * store, which is asked once for all: claim, statements, second half, record.
 *
 * Lives in the call's arena. One thread at a time: whoever keeps the call. What
 * others may touch is in flight, under its lock. */
struct passage {
    struct idem_ticket ticket; /* first: a ticket is its passage */
    struct once *once;
    struct idem_call *call;
    const struct idem_clock
        *clock; /* the call's, which is read less often than
                 * the system's, or the one once was given */
    struct flight flight;
    struct idem_shield_look look;
    struct tx_slot slot;
    struct permit permit;
    struct renewal *renewal;
    struct shared_answer *shared; /* the answer, when another call got it or it
                                   * was in memory */
    int64_t asked_ns;             /* when the claim was sent */
    int64_t noted_ns;             /* when the epoch was noted */
    int64_t give_up_ns;           /* a duplicate waits until then */
    unsigned naps;
    unsigned repeats; /* executions after the first */
    bool up;          /* a handler was let through: this is the reply side */
    bool rebuilding;  /* its author makes the reply again that dropped lacks */
    struct idem_answer dropped;
    bool admitted; /* it has its permit */
    bool in_line;  /* … it naps until it has */
    bool numbered; /* its session's number was looked at since the claim */
    bool looking;  /* ask what became of the key, do not claim it */
    bool looked;   /* Redis was asked */
    bool stating;  /* STATEMENT: the handler's first half is under way */
    bool stated;   /* … it said OK */
    bool kept;     /* … what the second half says is recorded */
    char epoch[IDEM_EPOCH_MAX]; /* the authority's, before it was asked */
    /* What this call may say of its effect if it were refused now: REFUSED at
     * first, ROLLED_BACK after an execution that did not commit, IN_DOUBT while
     * something of its key may stand. */
    enum idem_effect effect;
};

/* NULL: out of memory. */
struct passage *passage_new(struct once *once, struct idem_call *call);

/* Fill the ticket from the call: key, record, policy, and of the fingerprint
 * the raw hash.
 *
 * @retval IDEM_INVALID_ARGUMENT  a reason of reason.h
 */
enum idem_status passage_identify(struct passage *passage,
                                  struct idem_error *err) IDEM_MUST_CHECK;

/* The fingerprint's canonical hash, when it is not there yet: memory mostly
 * says the answer without it (decision 64), all others are given it. */
void passage_canonicalise(struct passage *passage);

/* Answer the call with what is in memory of its key; false: nothing that may be
 * shown, ask on. */
bool passage_recall(struct passage *passage);

/* From here the call is kept; all of these hand it on, so touch nothing after
 * them. ---------------------------------------------------------------------
 */

/* Wait beside the first call of the key, or be it and ask. */
void passage_enter(struct passage *passage);

/* Ask Redis if it is wanted, then the store. */
void passage_ask(struct passage *passage);
void passage_ask_store(struct passage *passage);

/* Claim the key once more and run the handler again, if the limit allows. */
void passage_repeat(struct passage *passage);

/* Do what the ticket's verdict of a claim or look says. */
void passage_judge(struct passage *passage);

/* End with a recorded answer. */
void passage_replay(struct passage *passage, const struct idem_answer *answer);

/* Of a session's key that is granted: may its number run? Then it is judged
 * again. And take the client's word for the numbers before it. */
void passage_check_number(struct passage *passage);

/* The same of STATEMENT, whose number the store looks at: it was EXPIRED, and
 * the call is told whether by its number or by its window. */
void passage_ask_why_expired(struct passage *passage);

/* The client's word alone; the call is still the caller's. */
void passage_take_word(struct passage *passage);

/* Whether the method's own rebuild stands for a reply that is not in the
 * record.
 */
bool passage_wants_rebuild(const struct passage *passage,
                           const struct idem_answer *answer);

/* Let the author make the reply again, read-only; and what came of it. Nothing
 * is claimed: the record is done. */
void passage_rebuild(struct passage *passage, const struct idem_answer *answer);
void passage_end_rebuild(struct passage *passage);

/* Leave with the outcome that is in the call. recorded: the answer that
 * duplicates get; NULL: there is none, the next in line asks. */
void passage_leave(struct passage *passage, const struct idem_answer *recorded);

/* May it ask the authority, by the server's limit? False: it was kept in line,
 * or was refused. */
bool passage_admit(struct passage *passage);

/* Its nap in line is over: true, unless it went on from there. */
bool passage_end_line(struct passage *passage);

/* Wait for another process, which runs the key. */
void passage_wait_for_other(struct passage *passage);

/* Nap until then, or until it is kicked. */
void passage_nap_until(struct passage *passage, int64_t until_ns);

/* Ask Redis; false: it is not wanted. */
bool passage_look(struct passage *passage);

/* The handler's answer has come up (or it was not begun). */
void passage_finish(struct passage *passage);

/* The same, if the limit allows; else the call fails. */
void passage_run_again(struct passage *passage);

/* The ticket's answer is recorded: it is the call's, and final. */
void passage_note_recorded(struct passage *passage);

/* STATEMENT: run the handler's first half; it has come up. */
void passage_state(struct passage *passage);
void passage_stated(struct passage *passage);

/* The first one's permit is this one's: it was in line for the key. */
void passage_inherit(struct passage *passage);

/* Its permit, or its place in line, is for others. */
void passage_give_back(struct passage *passage);

/* These keep the call. ----------------------------------------------------- */

/* Before a store or Redis is asked: whose answer it will be. */
void passage_note_epoch(struct passage *passage);

/* The store has answered the question before which the epoch was noted. */
void passage_heard(struct passage *passage);

/* Until when the key means something, ms since 1970: of an opaque one, from its
 * first call on. */
int64_t passage_ends_ms(const struct passage *passage, int64_t first_at_ms);

/* Keep in memory what the store, or Redis, has said or taken. */
void passage_remember(struct passage *passage,
                      const struct idem_answer *answer);
void passage_remember_abandoned(struct passage *passage);

/* Let Redis know an answer that the store has said or taken. */
void passage_fill(struct passage *passage, const struct idem_answer *answer);

#endif
