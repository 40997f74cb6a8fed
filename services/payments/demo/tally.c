#include "tally.h"

#include <stdio.h>
#include <time.h>

void
tally_init(struct tally *tally)
{
    pthread_condattr_t monotonic;

    *tally = (struct tally){0};
    pthread_mutex_init(&tally->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&tally->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void
tally_fini(struct tally *tally)
{
    pthread_cond_destroy(&tally->moved);
    pthread_mutex_destroy(&tally->lock);
}

void
tally_asked(struct tally *tally, const struct idem_outcome *outcome)
{
    struct tally_counts *counts = &tally->counts;

    pthread_mutex_lock(&tally->lock);
    counts->asked++;
    counts->attempts += outcome->attempts;
    counts->replayed += outcome->effect == IDEM_EFFECT_REPLAYED;
    counts->doubts += outcome->effect == IDEM_EFFECT_IN_DOUBT;
    if (!outcome->final) {
        counts->by_hand += outcome->effect != IDEM_EFFECT_IN_DOUBT;
        snprintf(counts->last_trouble, sizeof counts->last_trouble,
                 "%s, %s: %.180s", idem_status_name(outcome->status),
                 idem_effect_name(outcome->effect), outcome->message);
    }
    pthread_mutex_unlock(&tally->lock);
}

void
tally_resolved(struct tally *tally, enum idem_effect effect)
{
    pthread_mutex_lock(&tally->lock);
    if (effect == IDEM_EFFECT_REPLAYED)
        tally->counts.happened++;
    else
        tally->counts.had_not++;
    pthread_mutex_unlock(&tally->lock);
}

static void
add_one(struct tally *tally, unsigned *count)
{
    pthread_mutex_lock(&tally->lock);
    (*count)++;
    pthread_cond_broadcast(&tally->moved);
    pthread_mutex_unlock(&tally->lock);
}

void
tally_settled(struct tally *tally)
{
    add_one(tally, &tally->counts.settled);
}

void
tally_differs(struct tally *tally)
{
    add_one(tally, &tally->counts.differ);
}

void
tally_finished(struct tally *tally)
{
    add_one(tally, &tally->counts.finished);
}

struct tally_counts
tally_wait(struct tally *tally, int limit_ms)
{
    struct tally_counts counts;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += limit_ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&tally->lock);
    pthread_cond_timedwait(&tally->moved, &tally->lock, &until);
    counts = tally->counts;
    pthread_mutex_unlock(&tally->lock);
    return counts;
}
