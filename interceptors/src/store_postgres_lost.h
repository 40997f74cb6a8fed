#ifndef STORE_POSTGRES_LOST_H
#define STORE_POSTGRES_LOST_H

#include <pthread.h>
#include <stdatomic.h>

#include <idem/base.h>

/* Claims of mode LEASED whose connection was lost for good: the row may be
 * there, under an owner whose handler never began. The next claim of the key in
 * this process goes on as that owner, so that it is not held in doubt for
 * nothing. The oldest are forgotten. Any thread. */

#define LOST_MAX 256

struct lost_claims {
    atomic_uint held; /* places that are not free */
    pthread_mutex_t lock;
    unsigned next;
    struct {
        uint8_t digest[32];
        int64_t owner; /* 0: free */
    } at[LOST_MAX];
};

void pg_lost_init(struct lost_claims *lost);
void pg_lost_fini(struct lost_claims *lost);
void pg_lost_remember(struct lost_claims *lost, const uint8_t digest[32],
                      int64_t owner);

/* Forget it and say who owned it; 0: nobody. */
int64_t pg_lost_take(struct lost_claims *lost, const uint8_t digest[32]);

#endif
