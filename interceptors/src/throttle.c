#include "throttle.h"

#define ONE_MILLI 1000

void
throttle_init(struct throttle *throttle)
{
    atomic_init(&throttle->max_milli, 0);
    atomic_init(&throttle->tokens_milli, 0);
    throttle->ratio_milli = 0;
    pthread_mutex_init(&throttle->lock, NULL);
}

void
throttle_fini(struct throttle *throttle)
{
    pthread_mutex_destroy(&throttle->lock);
}

void
throttle_set(struct throttle *throttle, int64_t max_milli, int64_t ratio_milli)
{
    pthread_mutex_lock(&throttle->lock);
    throttle->tokens_milli =
        throttle->max_milli > 0
            ? throttle->tokens_milli * max_milli / throttle->max_milli
            : max_milli;
    throttle->max_milli = max_milli;
    throttle->ratio_milli = ratio_milli;
    pthread_mutex_unlock(&throttle->lock);
}

static bool
is_open(const struct throttle *throttle)
{
    return throttle->max_milli == 0 ||
           throttle->tokens_milli > throttle->max_milli / 2;
}

/* Between nothing and full. */
static void
move(struct throttle *throttle, int64_t by_milli)
{
    int64_t tokens_milli = throttle->tokens_milli + by_milli;

    if (tokens_milli < 0)
        tokens_milli = 0;
    if (tokens_milli > throttle->max_milli)
        tokens_milli = throttle->max_milli;
    throttle->tokens_milli = tokens_milli;
}

/* Nothing can be given back, as long as all goes well. */
static bool
is_full(const struct throttle *throttle)
{
    return atomic_load_explicit(&throttle->tokens_milli,
                                memory_order_relaxed) ==
           atomic_load_explicit(&throttle->max_milli, memory_order_relaxed);
}

void
throttle_success(struct throttle *throttle)
{
    if (is_full(throttle))
        return;
    pthread_mutex_lock(&throttle->lock);
    move(throttle, throttle->ratio_milli);
    pthread_mutex_unlock(&throttle->lock);
}

bool
throttle_failure(struct throttle *throttle)
{
    bool open;

    pthread_mutex_lock(&throttle->lock);
    move(throttle, -ONE_MILLI);
    open = is_open(throttle);
    pthread_mutex_unlock(&throttle->lock);
    return open;
}

bool
throttle_open(struct throttle *throttle)
{
    bool open;

    pthread_mutex_lock(&throttle->lock);
    open = is_open(throttle);
    pthread_mutex_unlock(&throttle->lock);
    return open;
}
