#ifndef ERRAND_H
#define ERRAND_H

#include <pthread.h>

#include <idem/store.h>

/* Operations on the store that no call waits for: renewals, and completions
 * that go on after their call was answered. They are counted, so that the store
 * is not freed under them. */
struct errands {
    pthread_mutex_t lock;
    pthread_cond_t none; /* count fell to 0 */
    unsigned count;
    bool stopped;
    struct late *late;     /* those that wait for their next try */
    struct renewal *spare; /* renewal.c's, to be used again … */
    unsigned spares;       /* … so many */
};

void errands_init(struct errands *errands);

/* Waits until all have ended. */
void errands_fini(struct errands *errands);

/* False: stopped, or too many. */
bool errands_begin(struct errands *errands) IDEM_MUST_CHECK;
void errands_end(struct errands *errands);

/* A ticket of its own for the same record, token and lease. Its texts are in
 * one block that *texts receives and the caller frees. false: out of memory. */
bool errand_ticket(struct idem_ticket *copy, const struct idem_ticket *ticket,
                   void **texts) IDEM_MUST_CHECK;

#endif
