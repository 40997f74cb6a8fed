#include "bearer_jwt_seen.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 1024

struct bearer_seen {
    pthread_mutex_t lock; /* guards the rest */
    uint8_t hashes[PLACES][IDEM_SHA256_SIZE];
};

struct bearer_seen *
bearer_seen_new(void)
{
    struct bearer_seen *seen = calloc(1, sizeof *seen);

    IDEM_ASSERT(seen);
    pthread_mutex_init(&seen->lock, NULL);
    return seen;
}

void
bearer_seen_free(struct bearer_seen *seen)
{
    if (!seen)
        return;
    pthread_mutex_destroy(&seen->lock);
    free(seen);
}

/* A place is another token's or nobody's: no token's hash is all zeros. */
static uint8_t *
place_of(struct bearer_seen *seen, const uint8_t hash[IDEM_SHA256_SIZE])
{
    return seen->hashes[(hash[0] | hash[1] << 8) % PLACES];
}

bool
bearer_seen_has(struct bearer_seen *seen, const uint8_t hash[IDEM_SHA256_SIZE])
{
    bool has;

    pthread_mutex_lock(&seen->lock);
    has = idem_digest_equal(place_of(seen, hash), hash, IDEM_SHA256_SIZE);
    pthread_mutex_unlock(&seen->lock);
    return has;
}

void
bearer_seen_add(struct bearer_seen *seen, const uint8_t hash[IDEM_SHA256_SIZE])
{
    pthread_mutex_lock(&seen->lock);
    memcpy(place_of(seen, hash), hash, IDEM_SHA256_SIZE);
    pthread_mutex_unlock(&seen->lock);
}
