#include "budget.h"

#include <string.h>

#define NS_PER_MS 1000000

void
budget_init(struct budget *budget)
{
    memset(budget->slots, 0, sizeof(budget->slots));
    atomic_init(&budget->ratio_milli, 0);
    budget->floor = 0;
    budget->slot_ns = 0;
    pthread_mutex_init(&budget->lock, NULL);
}

void
budget_fini(struct budget *budget)
{
    pthread_mutex_destroy(&budget->lock);
}

void
budget_open(struct budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    budget->ratio_milli = 0;
    pthread_mutex_unlock(&budget->lock);
}

void
budget_set(struct budget *budget, unsigned ratio_milli, unsigned floor,
           int64_t window_ms)
{
    int64_t slot_ns = (window_ms * NS_PER_MS + BUDGET_SLOTS - 1) / BUDGET_SLOTS;

    pthread_mutex_lock(&budget->lock);
    if (slot_ns != budget->slot_ns)
        memset(budget->slots, 0, sizeof(budget->slots));
    budget->ratio_milli = ratio_milli;
    budget->floor = floor;
    budget->slot_ns = slot_ns;
    pthread_mutex_unlock(&budget->lock);
}

static struct budget_slot *
slot_of(struct budget *budget, int64_t number)
{
    struct budget_slot *slot = &budget->slots[number % BUDGET_SLOTS];

    if (slot->number != number)
        *slot = (struct budget_slot){.number = number};
    return slot;
}

static bool
has_room(const struct budget *budget, int64_t number)
{
    uint64_t calls = 0, repeats = 0;

    for (unsigned i = 0; i < BUDGET_SLOTS; i++) {
        if (budget->slots[i].number <= number - BUDGET_SLOTS)
            continue;
        calls += budget->slots[i].calls;
        repeats += budget->slots[i].repeats;
    }
    return repeats < budget->floor ||
           (repeats + 1) * 1000 <= calls * budget->ratio_milli;
}

bool
budget_is_on(const struct budget *budget)
{
    return atomic_load_explicit(&budget->ratio_milli, memory_order_relaxed) > 0;
}

void
budget_call(struct budget *budget, int64_t now_ns)
{
    pthread_mutex_lock(&budget->lock);
    if (budget->ratio_milli > 0)
        slot_of(budget, now_ns / budget->slot_ns)->calls++;
    pthread_mutex_unlock(&budget->lock);
}

bool
budget_take(struct budget *budget, int64_t now_ns)
{
    bool taken = true;

    pthread_mutex_lock(&budget->lock);
    if (budget->ratio_milli > 0) {
        int64_t number = now_ns / budget->slot_ns;

        taken = has_room(budget, number);
        slot_of(budget, number)->repeats += taken;
    }
    pthread_mutex_unlock(&budget->lock);
    return taken;
}
