#include "timer.h"

#include <stdlib.h>

#include <idem/call.h>

/* A hierarchical wheel. A tick is 2^20 ns, about a millisecond; a level has 64
 * slots, and a slot of level n spans 64^n ticks. A timer lies at the level of
 * the highest digit, base 64, in which its tick differs from the wheel's: so
 * all that lies at a level comes before all that lies above, and the next timer
 * is in the first used slot of the lowest used level. Starting and stopping
 * cost the same whatever the number of timers. Eight levels span an int64_t. */
#define TICK_BITS 20
#define DIGIT_BITS 6
#define SLOTS (1u << DIGIT_BITS)
#define LEVELS 8

struct idem_timers {
    const struct idem_clock *clock;
    pthread_t thread;

    pthread_mutex_t lock; /* guards all below and each timer's fields */
    pthread_cond_t wake;
    bool stopping;
    int64_t sleeps_until_ns; /* INT64_MIN: awake, and will look again */
    uint64_t tick;           /* the wheel's: all before it is due */
    struct idem_timer *due;  /* to be fired now */
    uint64_t used[LEVELS];   /* a bit for each slot that is not empty */
    struct idem_timer *slot[LEVELS][SLOTS];
};

static uint64_t
tick_of(int64_t at_ns)
{
    return at_ns < 0 ? 0 : (uint64_t)at_ns >> TICK_BITS;
}

static unsigned
digit_of(uint64_t tick, unsigned level)
{
    return (tick >> (DIGIT_BITS * level)) & (SLOTS - 1);
}

static void
link_at(struct idem_timer **head, struct idem_timer *timer)
{
    timer->next = *head;
    timer->link = head;
    if (timer->next)
        timer->next->link = &timer->next;
    *head = timer;
}

static void
unlink_timer(struct idem_timer *timer)
{
    *timer->link = timer->next;
    if (timer->next)
        timer->next->link = timer->link;
    timer->next = NULL;
    timer->link = NULL;
}

static void
insert(struct idem_timers *timers, struct idem_timer *timer)
{
    uint64_t tick = tick_of(timer->at_ns);

    if (tick < timers->tick)
        tick = timers->tick;

    uint64_t differs = (tick ^ timers->tick) | 1;
    unsigned level = (63 - (unsigned)__builtin_clzll(differs)) / DIGIT_BITS;
    unsigned slot = digit_of(tick, level);

    link_at(&timers->slot[level][slot], timer);
    timers->used[level] |= UINT64_C(1) << slot;
}

/* A slot's bit may outlive its last timer: stop does not know the slot. */
static bool
first_slot(struct idem_timers *timers, unsigned *level, unsigned *slot)
{
    for (*level = 0; *level < LEVELS; ++*level)
        while (timers->used[*level]) {
            *slot = (unsigned)__builtin_ctzll(timers->used[*level]);
            if (timers->slot[*level][*slot])
                return true;
            timers->used[*level] &= ~(UINT64_C(1) << *slot);
        }
    return false;
}

static uint64_t
start_of(const struct idem_timers *timers, unsigned level, unsigned slot)
{
    unsigned above = DIGIT_BITS * (level + 1);

    return ((timers->tick >> above) << above) |
           ((uint64_t)slot << (DIGIT_BITS * level));
}

/* A slot of a higher level has come: its timers go to the levels below. */
static void
spread(struct idem_timers *timers, unsigned level, unsigned slot)
{
    struct idem_timer *timer;

    timers->used[level] &= ~(UINT64_C(1) << slot);
    while ((timer = timers->slot[level][slot]) != NULL) {
        unlink_timer(timer);
        insert(timers, timer);
    }
}

/* Move what is due out of a slot of level 0. Returns the time of the earliest
 * that is left in it; INT64_MAX: none. */
static int64_t
take_due(struct idem_timers *timers, unsigned slot, int64_t now_ns)
{
    int64_t earliest_ns = INT64_MAX;
    struct idem_timer *next;

    for (struct idem_timer *timer = timers->slot[0][slot]; timer;
         timer = next) {
        next = timer->next;
        if (timer->at_ns <= now_ns) {
            unlink_timer(timer);
            link_at(&timers->due, timer);
        } else if (timer->at_ns < earliest_ns) {
            earliest_ns = timer->at_ns;
        }
    }
    return earliest_ns;
}

/* Turn the wheel to now. Returns when to look again. */
static int64_t
turn(struct idem_timers *timers, int64_t now_ns)
{
    uint64_t now = tick_of(now_ns);
    unsigned level, slot;

    while (first_slot(timers, &level, &slot)) {
        uint64_t start = start_of(timers, level, slot);

        if (start > now) {
            timers->tick = now > timers->tick ? now : timers->tick;
            return level > 0 ? (int64_t)(start << TICK_BITS)
                             : take_due(timers, slot, now_ns);
        }
        timers->tick = start;
        if (level > 0) {
            spread(timers, level, slot);
            continue;
        }

        int64_t earliest_ns = take_due(timers, slot, now_ns);

        if (earliest_ns != INT64_MAX)
            return earliest_ns;
    }
    timers->tick = now > timers->tick ? now : timers->tick;
    return INT64_MAX;
}

static void
fire_due(void *with)
{
    struct idem_timers *timers = with;
    struct idem_timer *timer;

    pthread_mutex_lock(&timers->lock);
    while ((timer = timers->due) != NULL && !timers->stopping) {
        unlink_timer(timer);
        pthread_mutex_unlock(&timers->lock);
        timer->fire(timer);
        pthread_mutex_lock(&timers->lock);
    }
    pthread_mutex_unlock(&timers->lock);
}

/* Many are due at once where many calls waited for one answer (a storm of
 * duplicates): theirs leave in one write a connection. With the lock. */
static void
fire_together(struct idem_timers *timers)
{
    pthread_mutex_unlock(&timers->lock);
    idem_call_resume_all(fire_due, timers);
    pthread_mutex_lock(&timers->lock);
}

static void *
run(void *arg)
{
    struct idem_timers *timers = arg;
    const struct idem_clock *clock = timers->clock;

    pthread_mutex_lock(&timers->lock);
    while (!timers->stopping) {
        int64_t next_ns = turn(timers, clock->monotonic_ns(clock));

        if (timers->due) {
            fire_together(timers);
            continue;
        }
        timers->sleeps_until_ns = next_ns;
        clock->wait_until(clock, &timers->wake, &timers->lock, next_ns);
        timers->sleeps_until_ns = INT64_MIN;
    }
    pthread_mutex_unlock(&timers->lock);
    return NULL;
}

struct idem_timers *
timers_new(const struct idem_clock *clock)
{
    struct idem_timers *timers = calloc(1, sizeof(*timers));

    if (!timers)
        return NULL;
    timers->clock = clock;
    timers->sleeps_until_ns = INT64_MIN;
    timers->tick = tick_of(clock->monotonic_ns(clock));
    pthread_mutex_init(&timers->lock, NULL);
    pthread_cond_init(&timers->wake, NULL);
    if (pthread_create(&timers->thread, NULL, run, timers) == 0)
        return timers;
    pthread_cond_destroy(&timers->wake);
    pthread_mutex_destroy(&timers->lock);
    free(timers);
    return NULL;
}

void
timers_free(struct idem_timers *timers)
{
    if (!timers)
        return;
    pthread_mutex_lock(&timers->lock);
    timers->stopping = true;
    pthread_cond_signal(&timers->wake);
    pthread_mutex_unlock(&timers->lock);
    pthread_join(timers->thread, NULL);
    pthread_cond_destroy(&timers->wake);
    pthread_mutex_destroy(&timers->lock);
    free(timers);
}

void
idem_timer_start(struct idem_timers *timers, struct idem_timer *timer,
                 int64_t at_ns)
{
    pthread_mutex_lock(&timers->lock);
    if (timer->link)
        unlink_timer(timer);
    timer->at_ns = at_ns;
    insert(timers, timer);
    if (at_ns < timers->sleeps_until_ns) {
        timers->sleeps_until_ns = at_ns;
        pthread_cond_signal(&timers->wake);
    }
    pthread_mutex_unlock(&timers->lock);
}

bool
idem_timer_stop(struct idem_timers *timers, struct idem_timer *timer)
{
    pthread_mutex_lock(&timers->lock);

    bool waited = timer->link != NULL;

    if (waited)
        unlink_timer(timer);
    pthread_mutex_unlock(&timers->lock);
    return waited;
}
