#ifndef LEAD_H
#define LEAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Who runs a loop. One of two threads leads it; the other one waits. The leader
 * may lend itself out between two of the loop's events, to what was put behind
 * the event. When that takes long, anybody relieves it: the other thread leads,
 * and the first one waits in its place when it comes back. Until then nothing
 * is lent any more, so two threads are enough (decision 48).
 *
 *    LED --lend--> LENT --come back--> LED
 *                    |
 *                 relieve --> OUT (the other one leads) --come back--> LED
 */
#define LEADS_MAX 4 /* of a process */

struct lead {
    unsigned number;  /* below LEADS_MAX */
    atomic_bool pair; /* there are two threads */
    atomic_int turn;
    pthread_mutex_t lock; /* guards vacant */
    pthread_cond_t vacancy;
    bool vacant; /* at first */
};

void lead_init(struct lead *lead, unsigned number);
void lead_fini(struct lead *lead);

/* Begins to lead, when nobody does. */
void lead_await(struct lead *lead);

/* Something was put behind on this thread. */
bool lead_has_behind(void);

/* On the leader, with nothing of the loop on its stack: lend, run what is
 * behind, come back. False: it was relieved and leads no more. */
bool lead_run_behind(struct lead *lead);

/* This thread leads nothing any more: in the child of a fork. */
void lead_forget(void);

/* This thread's, if it may put something behind; else NULL. */
struct lead *lead_here(void);

/* run(with), once, behind the present event. After lead_here on this thread. */
void lead_put_behind(void (*run)(void *with), void *with);

/* Not relieved: within what was put behind. */
bool lead_is_lent(const struct lead *lead);

/* What it is lent to takes long. Any thread; nothing, when it is not lent. */
void lead_relieve(struct lead *lead);

#endif
