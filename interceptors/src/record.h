#ifndef RECORD_H
#define RECORD_H

#include <idem/store.h>

/* What a record says about a ticket: the state machine of <idem/store.h> as one
 * table, the same for every authority. The authority reads the record, asks
 * here, and makes the move that it is told by one conditional statement. */

enum record_state {
    RECORD_ABSENT,
    RECORD_RUNNING,
    RECORD_RELEASED,
    RECORD_DONE,
    RECORD_DOUBT,
    RECORD_ABANDONED,
};

/* A record as an authority has read it; bytes live in the ticket's arena. */
struct record {
    enum record_state state;
    bool same_key;        /* tenant, scope and key text are the ticket's */
    bool has_fingerprint; /* not when it was abandoned before any call */
    struct idem_fingerprint fingerprint;
    int64_t token;
    unsigned executions;
    int64_t lease_left_ms; /* RUNNING; 0 or less: it is over */
    bool unbegun;          /* claimed last, and no step was marked */
    bool window_over;      /* of the ticket's key, by the authority's clock */
    bool dropped;          /* DONE: the answer is not kept any more */
    struct idem_answer answer; /* DONE; first_at_ms always */
};

enum record_move {
    RECORD_KEEP,    /* nothing to write: the ticket's verdict is final */
    RECORD_TAKE,    /* absent: insert it as RUNNING; else take it over */
    RECORD_HOLD,    /* write DOUBT; that is the verdict too */
    RECORD_ABANDON, /* write ABANDONED; that is the verdict too */
    RECORD_SETTLE,  /* write what the settlement says, under the next token */
};

/* What a claim does; fills the ticket's verdict and what belongs to it, unless
 * the move is TAKE. */
enum record_move record_claim(const struct record *record,
                              struct idem_ticket *ticket);

/* What abandon does. */
enum record_move record_abandon(const struct record *record,
                                struct idem_ticket *ticket);

/* What settle does. Asked again for what it has done: KEEP with MINE. */
enum record_move record_settle(const struct record *record,
                               struct idem_ticket *ticket);

/* What look says. */
void record_look(const struct record *record, struct idem_ticket *ticket);

#endif
