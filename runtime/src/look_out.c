#include "look_out.h"

#include <idem/clock.h>

#define PAUSE_NS 1000000
#define IDLE_LOOKS 16 /* in a row; then it rests */

static int64_t
next_look_ns(const struct look_out *look_out, const struct idem_clock *clock)
{
    return look_out->rests ? INT64_MAX : clock->monotonic_ns(clock) + PAUSE_NS;
}

static void *
run(void *with)
{
    const struct idem_clock *clock = idem_clock_system();
    struct look_out *look_out = with;
    unsigned idle = 0;

    pthread_mutex_lock(look_out->lock);
    while (!look_out->over) {
        look_out->rests = idle >= IDLE_LOOKS;
        clock->wait_until(clock, &look_out->wake, look_out->lock,
                          next_look_ns(look_out, clock));
        look_out->rests = false;
        idle = look_out->look(look_out->with) ? 0 : idle + 1;
    }
    pthread_mutex_unlock(look_out->lock);
    return NULL;
}

bool
look_out_start(struct look_out *look_out, pthread_mutex_t *lock,
               bool (*look)(void *with), void *with)
{
    *look_out = (struct look_out){.look = look, .with = with, .lock = lock};
    pthread_cond_init(&look_out->wake, NULL);
    if (pthread_create(&look_out->thread, NULL, run, look_out) == 0)
        return true;
    pthread_cond_destroy(&look_out->wake);
    return false;
}

void
look_out_end(struct look_out *look_out)
{
    pthread_mutex_lock(look_out->lock);
    look_out->over = true;
    pthread_cond_signal(&look_out->wake);
    pthread_mutex_unlock(look_out->lock);
    pthread_join(look_out->thread, NULL);
    pthread_cond_destroy(&look_out->wake);
}

void
look_out_wake(struct look_out *look_out)
{
    if (look_out->rests)
        pthread_cond_signal(&look_out->wake);
}
