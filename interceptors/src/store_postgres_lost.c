#include "store_postgres_lost.h"

#include <string.h>

void
pg_lost_init(struct lost_claims *lost)
{
    memset(lost, 0, sizeof(*lost));
    pthread_mutex_init(&lost->lock, NULL);
}

void
pg_lost_fini(struct lost_claims *lost)
{
    pthread_mutex_destroy(&lost->lock);
}

void
pg_lost_remember(struct lost_claims *lost, const uint8_t digest[32],
                 int64_t owner)
{
    pthread_mutex_lock(&lost->lock);
    if (lost->at[lost->next].owner == 0 && owner != 0)
        atomic_fetch_add(&lost->held, 1);
    memcpy(lost->at[lost->next].digest, digest, 32);
    lost->at[lost->next].owner = owner;
    lost->next = (lost->next + 1) % LOST_MAX;
    pthread_mutex_unlock(&lost->lock);
}

int64_t
pg_lost_take(struct lost_claims *lost, const uint8_t digest[32])
{
    int64_t owner = 0;

    if (atomic_load(&lost->held) == 0)
        return 0;
    pthread_mutex_lock(&lost->lock);
    for (unsigned i = 0; i < LOST_MAX && owner == 0; i++) {
        if (lost->at[i].owner == 0 ||
            memcmp(lost->at[i].digest, digest, 32) != 0)
            continue;
        owner = lost->at[i].owner;
        lost->at[i].owner = 0;
        atomic_fetch_sub(&lost->held, 1);
    }
    pthread_mutex_unlock(&lost->lock);
    return owner;
}
