#include <idem/turns.h>

#include "io_loop.h"
#include "timer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define NEVER INT64_MAX

struct idem_turns {
    struct io_source source; /* first: a source is its turns */
    void (*turn)(void *with);
    void *with;

    struct idem_timers *timers;
    struct idem_timer timer;
    /* When the timer fires; NEVER: it has fired, or was not started. A turn
     * follows each time that it fires, so it may be read too early. */
    atomic_int_fast64_t armed_ns;

    pthread_mutex_t lock; /* guards gone */
    pthread_cond_t changed;
    bool gone;
};

static void
ready(struct io_source *source, uint32_t events)
{
    struct idem_turns *turns = (struct idem_turns *)source;

    (void)events;
    turns->turn(turns->with);
}

static void
dropped(struct io_source *source)
{
    struct idem_turns *turns = (struct idem_turns *)source;

    pthread_mutex_lock(&turns->lock);
    turns->gone = true;
    pthread_cond_signal(&turns->changed);
    pthread_mutex_unlock(&turns->lock);
}

static void
fire(struct idem_timer *timer)
{
    struct idem_turns *turns =
        (struct idem_turns *)((char *)timer -
                              offsetof(struct idem_turns, timer));

    atomic_store(&turns->armed_ns, NEVER);
    idem_turns_ask(turns);
}

static struct idem_turns *
make(const struct idem_turns_options *options)
{
    struct idem_turns *turns = calloc(1, sizeof(*turns));

    if (!turns)
        return NULL;
    turns->source = (struct io_source){
        .fd = options->fd, .ready = ready, .dropped = dropped};
    turns->turn = options->turn;
    turns->with = options->with;
    turns->timer.fire = fire;
    atomic_init(&turns->armed_ns, NEVER);
    pthread_mutex_init(&turns->lock, NULL);
    pthread_cond_init(&turns->changed, NULL);
    turns->timers =
        timers_new(options->clock ? options->clock : idem_clock_system());
    return turns;
}

enum idem_status
idem_turns_new(struct idem_turns **out,
               const struct idem_turns_options *options, struct idem_error *err)
{
    struct idem_turns *turns = make(options);

    if (!turns)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory");
    *out = turns;
    if (turns->timers && io_loop_join(&turns->source)) {
        if (io_loop_watch(&turns->source, EPOLLIN))
            return IDEM_OK;
        turns->source.fd = -1;
        idem_turns_stop(turns);
    }
    idem_turns_free(turns);
    return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                     "no thread or descriptor for work beside the calls");
}

void
idem_turns_ask(struct idem_turns *turns)
{
    io_loop_nudge(&turns->source);
}

bool
idem_turns_here(const struct idem_turns *turns)
{
    return io_loop_is_here(&turns->source);
}

void
idem_turns_by(struct idem_turns *turns, int64_t at_ns)
{
    if (at_ns >= atomic_load(&turns->armed_ns))
        return;
    atomic_store(&turns->armed_ns, at_ns);
    idem_timer_start(turns->timers, &turns->timer, at_ns);
}

void
idem_turns_sent(struct idem_turns *turns)
{
    io_loop_sent(&turns->source);
}

void
idem_turns_stop(struct idem_turns *turns)
{
    io_loop_drop(&turns->source);
    pthread_mutex_lock(&turns->lock);
    while (!turns->gone)
        pthread_cond_wait(&turns->changed, &turns->lock);
    pthread_mutex_unlock(&turns->lock);
}

void
idem_turns_free(struct idem_turns *turns)
{
    timers_free(turns->timers);
    pthread_cond_destroy(&turns->changed);
    pthread_mutex_destroy(&turns->lock);
    free(turns);
}
