#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define SHARDS 16
#define SHARD_BYTE 8 /* of the digest; those before choose the bucket */

struct memory_entry {
    struct memory_fact fact; /* owns a reference to its answer */
    size_t size;
    struct memory_entry *next_in_bucket;
    struct memory_entry *prev, *next; /* by use, the latest first */
};

/* Each guarded by its lock. */
struct memory_shard {
    pthread_mutex_t lock;
    struct memory_entry **buckets;
    struct memory_entry *by_use;
    uint64_t entries, bytes, evicted;
};

struct memory {
    uint64_t max_bytes, max_entries; /* of a shard */
    uint32_t bucket_mask;
    struct memory_shard shards[SHARDS];
};

static struct memory_shard *
shard_of(struct memory *memory, const uint8_t *digest)
{
    return &memory->shards[digest[SHARD_BYTE] % SHARDS];
}

/* Where the entry's link in its bucket is, or would be. */
static struct memory_entry **
find(const struct memory *memory, struct memory_shard *shard,
     const uint8_t *digest)
{
    struct memory_entry **at;
    uint32_t bucket;

    memcpy(&bucket, digest, sizeof(bucket));
    at = &shard->buckets[bucket & memory->bucket_mask];
    while (*at && memcmp((*at)->fact.digest, digest, 32) != 0)
        at = &(*at)->next_in_bucket;
    return at;
}

/* --- Room --- */

static size_t
size_of(const struct memory_fact *fact)
{
    size_t size = sizeof(struct memory_entry);

    if (fact->answer) {
        const struct idem_answer *answer = &fact->answer->answer;

        size += sizeof(*fact->answer) + answer->message.size +
                answer->reason.size + answer->reply.size +
                answer->trailers.size;
    }
    return size;
}

static void
drop(struct memory_shard *shard, struct memory_entry **at)
{
    struct memory_entry *entry = *at;

    *at = entry->next_in_bucket;
    DL_DELETE(shard->by_use, entry);
    shard->entries--;
    shard->bytes -= entry->size;
    shared_answer_unref(entry->fact.answer);
    free(entry);
}

static void
make_room(const struct memory *memory, struct memory_shard *shard, size_t size)
{
    while (shard->by_use && (shard->entries >= memory->max_entries ||
                             shard->bytes + size > memory->max_bytes)) {
        const struct memory_entry *oldest = shard->by_use->prev;

        drop(shard, find(memory, shard, oldest->fact.digest));
        shard->evicted++;
    }
}

static void
add(const struct memory *memory, struct memory_shard *shard,
    struct memory_entry *entry)
{
    struct memory_entry **at = find(memory, shard, entry->fact.digest);

    if (*at)
        drop(shard, at);
    make_room(memory, shard, entry->size);
    at = find(memory, shard, entry->fact.digest);
    entry->next_in_bucket = *at;
    *at = entry;
    DL_PREPEND(shard->by_use, entry);
    shard->entries++;
    shard->bytes += entry->size;
}

/* --- Life --- */

static uint32_t
buckets_for(uint64_t entries)
{
    uint32_t buckets = 16;

    while (buckets < entries && buckets < UINT32_C(1) << 24)
        buckets *= 2;
    return buckets;
}

static bool
open_shard(struct memory_shard *shard, uint32_t buckets)
{
    pthread_mutex_init(&shard->lock, NULL);
    shard->buckets = calloc(buckets, sizeof(struct memory_entry *));
    return shard->buckets != NULL;
}

struct memory *
memory_new(size_t bytes, unsigned entries)
{
    struct memory *memory = calloc(1, sizeof(*memory));
    bool opened = memory != NULL;

    if (!memory)
        return NULL;
    memory->max_bytes = bytes / SHARDS;
    memory->max_entries = (entries + SHARDS - 1) / SHARDS;
    memory->bucket_mask = buckets_for(memory->max_entries) - 1;
    for (unsigned i = 0; i < SHARDS; i++)
        opened =
            open_shard(&memory->shards[i], memory->bucket_mask + 1) && opened;
    if (opened)
        return memory;
    memory_free(memory);
    return NULL;
}

void
memory_free(struct memory *memory)
{
    if (!memory)
        return;
    for (unsigned i = 0; i < SHARDS; i++) {
        struct memory_shard *shard = &memory->shards[i];

        while (shard->by_use)
            drop(shard, find(memory, shard, shard->by_use->fact.digest));
        free(shard->buckets);
        pthread_mutex_destroy(&shard->lock);
    }
    free(memory);
}

/* --- Use --- */

void
memory_keep(struct memory *memory, const struct memory_fact *fact)
{
    struct memory_shard *shard = shard_of(memory, fact->digest);
    struct memory_entry *entry;
    size_t size = size_of(fact);

    if (size > memory->max_bytes)
        return;
    entry = malloc(sizeof(*entry));
    if (!entry)
        return; /* it is only a shorter way */
    entry->fact = *fact;
    entry->size = size;
    if (fact->answer)
        shared_answer_ref(fact->answer);
    pthread_mutex_lock(&shard->lock);
    add(memory, shard, entry);
    pthread_mutex_unlock(&shard->lock);
}

static bool
is_shown(const struct memory_fact *fact, const struct memory_question *question)
{
    return question->wall_ms < fact->until_ms &&
           strcmp(question->epoch, fact->epoch) == 0;
}

/* Before anything is shown the requests are compared. An abandoned key may have
 * been so before any request came: whose it is only its record knows. One whose
 * canonical hash is not there yet is not another request for sure. */
static enum idem_verdict
judge(const struct memory_fact *fact, const struct memory_question *question)
{
    if (!is_shown(fact, question))
        return IDEM_VERDICT_ABSENT;
    if (idem_fingerprint_match(&fact->fingerprint, question->fingerprint))
        return fact->verdict;
    return fact->verdict == IDEM_VERDICT_DONE ||
                   question->fingerprint->version == 0
               ? IDEM_VERDICT_REUSED
               : IDEM_VERDICT_ABSENT;
}

static void
use(struct memory_shard *shard, struct memory_entry *entry,
    struct memory_fact *fact)
{
    DL_DELETE(shard->by_use, entry);
    DL_PREPEND(shard->by_use, entry);
    *fact = entry->fact;
    if (fact->answer)
        shared_answer_ref(fact->answer);
}

enum idem_verdict
memory_recall(struct memory *memory, const struct memory_question *question,
              struct memory_fact *fact)
{
    struct memory_shard *shard = shard_of(memory, question->digest);
    enum idem_verdict verdict = IDEM_VERDICT_ABSENT;
    struct memory_entry *entry;

    pthread_mutex_lock(&shard->lock);
    entry = *find(memory, shard, question->digest);
    if (entry)
        verdict = judge(&entry->fact, question);
    if (verdict != IDEM_VERDICT_ABSENT)
        use(shard, entry, fact);
    pthread_mutex_unlock(&shard->lock);
    return verdict;
}

void
memory_counts(struct memory *memory, struct memory_counts *counts)
{
    *counts = (struct memory_counts){0, 0, 0};
    for (unsigned i = 0; i < SHARDS; i++) {
        struct memory_shard *shard = &memory->shards[i];

        pthread_mutex_lock(&shard->lock);
        counts->entries += shard->entries;
        counts->bytes += shard->bytes;
        counts->evicted += shard->evicted;
        pthread_mutex_unlock(&shard->lock);
    }
}
