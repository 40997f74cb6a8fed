#ifndef MEMORY_H
#define MEMORY_H

#include "shared_answer.h"

/* What the authority is known to have recorded for good, kept in this process
 * for repeats (decision 0014). It is asked as Redis is, and may say as little:
 * only DONE and ABANDONED lie here, which are written once, and each is shown
 * only under the epoch of the authority that wrote it.
 *
 * Bounded twice, by bytes and by number; what was not asked for longest goes
 * first. Any thread; a lock for each sixteenth of the keys. */
struct memory;

/* One thing that is known of a key. */
struct memory_fact {
    uint8_t digest[32];
    char epoch[IDEM_EPOCH_MAX]; /* not empty */
    struct idem_fingerprint fingerprint;
    int64_t until_ms;             /* wall clock: not shown after */
    enum idem_verdict verdict;    /* DONE or ABANDONED */
    struct shared_answer *answer; /* DONE */
};

/* What a call asks. */
struct memory_question {
    const uint8_t *digest;
    const char *epoch;
    const struct idem_fingerprint *fingerprint; /* the raw one will do */
    int64_t wall_ms;
};

struct memory_counts {
    uint64_t entries, bytes; /* now */
    uint64_t evicted;        /* since the start: for want of room */
};

/* NULL: out of memory. */
struct memory *memory_new(size_t bytes, unsigned entries);

/* NULL is fine. */
void memory_free(struct memory *memory);

/* Keep a fact, in place of what is known of the key; takes a reference of its
 * own to the answer. One that is larger than a sixteenth of the bytes is not
 * kept. */
void memory_keep(struct memory *memory, const struct memory_fact *fact);

/* Fills *fact and returns DONE or ABANDONED; REUSED: recorded for the request
 * that fact->fingerprint is of, or, when the question's fingerprint has no
 * canonical hash, to be asked again with it. ABSENT: ask on, fact is untouched.
 * The caller unrefs fact->answer, which is NULL unless the verdict is DONE or
 * REUSED. */
enum idem_verdict memory_recall(struct memory *memory,
                                const struct memory_question *question,
                                struct memory_fact *fact);

void memory_counts(struct memory *memory, struct memory_counts *counts);

#endif
