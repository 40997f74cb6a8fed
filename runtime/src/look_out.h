#ifndef LOOK_OUT_H
#define LOOK_OUT_H

#include <pthread.h>
#include <stdbool.h>

/* A thread that looks again and again while there is work, and rests when there
 * is none. */
struct look_out {
    /* Every millisecond, with the lock. False: there was nothing to do since
     * the look before. */
    bool (*look)(void *with);
    void *with;
    pthread_mutex_t *lock; /* the owner's; guards the rest */
    pthread_cond_t wake;
    bool rests; /* until it is woken */
    bool over;
    pthread_t thread;
};

/* False: no thread; nothing is to be ended. */
bool look_out_start(struct look_out *look_out, pthread_mutex_t *lock,
                    bool (*look)(void *with), void *with);

/* Without the lock. */
void look_out_end(struct look_out *look_out);

/* There is work. With the lock. */
void look_out_wake(struct look_out *look_out);

#endif
