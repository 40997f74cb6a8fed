#ifndef BUDGET_H
#define BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BUDGET_SLOTS 10

/* How many repeats a channel makes: at most a share of its calls within a
 * window that moves, and a floor that is always allowed, so that a channel with
 * few calls repeats at all. Beside the throttle, whose absolute numbers are
 * hard to choose (grpc-go#7539; case B034). For any thread; its lock is a leaf.
 */
struct budget {
    pthread_mutex_t lock;
    atomic_uint ratio_milli; /* repeats for a thousand calls; 0: no budget */
    unsigned floor;          /* repeats in a window whatever the calls */
    int64_t slot_ns;
    struct budget_slot {
        int64_t number; /* of its time since the clock's zero */
        uint64_t calls, repeats;
    } slots[BUDGET_SLOTS];
};

/* No budget: everything may be repeated. */
void budget_init(struct budget *budget);
void budget_fini(struct budget *budget);

/* No budget from now on. */
void budget_open(struct budget *budget);

/* What was counted stays, unless the window is another. */
void budget_set(struct budget *budget, unsigned ratio_milli, unsigned floor,
                int64_t window_ms);

/* There is a budget; else calls need not be counted. */
bool budget_is_on(const struct budget *budget);

/* A call has begun. */
void budget_call(struct budget *budget, int64_t now_ns);

/* One more attempt; false: it may not be made, and is not counted. */
bool budget_take(struct budget *budget, int64_t now_ns);

#endif
