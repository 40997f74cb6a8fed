#include "rate.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#define NS_PER_MS INT64_C(1000000)

struct bucket {
    int64_t full_ns; /* when all its tokens are there again */
    UT_hash_handle hh;
    size_t size; /* of the key: the method, then the principal */
    unsigned char key[];
};

void
rates_init(struct rates *rates, unsigned max)
{
    pthread_mutex_init(&rates->lock, NULL);
    rates->max = max;
    rates->buckets = NULL;
}

static void
drop(struct rates *rates, struct bucket *bucket)
{
    HASH_DEL(rates->buckets, bucket);
    free(bucket);
}

void
rates_fini(struct rates *rates)
{
    while (rates->buckets)
        drop(rates, rates->buckets);
    pthread_mutex_destroy(&rates->lock);
}

static struct bucket *
make(const struct idem_method *method, struct idem_bytes principal)
{
    size_t size = sizeof(method) + principal.size;
    struct bucket *bucket = malloc(sizeof(*bucket) + size);

    if (!bucket)
        return NULL;
    bucket->full_ns = INT64_MIN;
    bucket->size = size;
    memcpy(bucket->key, &method, sizeof(method));
    if (principal.size > 0)
        memcpy(bucket->key + sizeof(method), principal.data, principal.size);
    return bucket;
}

/* The principal's, last in the order of use. NULL: out of memory. */
static struct bucket *
find(struct rates *rates, const struct idem_method *method,
     struct idem_bytes principal)
{
    struct bucket *bucket = make(method, principal), *known;

    if (!bucket)
        return NULL;
    HASH_FIND(hh, rates->buckets, bucket->key, bucket->size, known);
    if (known) {
        free(bucket);
        bucket = known;
        HASH_DEL(rates->buckets, bucket);
    } else if (HASH_COUNT(rates->buckets) >= rates->max)
        drop(rates, rates->buckets); /* the first: the longest unused */
    HASH_ADD_KEYPTR(hh, rates->buckets, bucket->key, bucket->size, bucket);
    return bucket;
}

int64_t
rates_take(struct rates *rates, const struct idem_method *method,
           const struct idem_limit_policy *policy, struct idem_bytes principal,
           int64_t now_ns)
{
    int64_t token_ns = policy->rate_per_ms * NS_PER_MS / policy->rate_calls;
    int64_t depth_ns = token_ns * policy->rate_burst;
    int64_t over_ns = 0;
    struct bucket *bucket;

    pthread_mutex_lock(&rates->lock);
    bucket = find(rates, method, principal);
    if (bucket) {
        int64_t from_ns = bucket->full_ns > now_ns ? bucket->full_ns : now_ns;

        over_ns = from_ns + token_ns - now_ns - depth_ns;
        if (over_ns <= 0)
            bucket->full_ns = from_ns + token_ns;
    }
    pthread_mutex_unlock(&rates->lock);
    return over_ns > 0 ? over_ns : 0;
}
