#ifndef SHARED_ANSWER_H
#define SHARED_ANSWER_H

#include <stdatomic.h>

#include <idem/store.h>

/* One copy of a recorded answer for all the calls that waited for it: ten
 * thousand duplicates of a reply of 1 MiB hold it once. */
struct shared_answer {
    atomic_uint refs;
    struct idem_answer answer; /* its bytes follow in the same block */
};

/* A copy with one reference; NULL: out of memory. */
struct shared_answer *shared_answer_new(const struct idem_answer *answer);
struct shared_answer *shared_answer_ref(struct shared_answer *shared);

/* Frees with the last one. NULL is fine. */
void shared_answer_unref(struct shared_answer *shared);

#endif
