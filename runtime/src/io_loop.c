#include "io_loop.h"

#include "lead.h"
#include "spin.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <idem/clock.h>
#include <idem/threads.h>

#define NS_PER_US 1000
#define EVENTS_MAX 64 /* of one wait */
/* Of as many events and more each is answered by itself: the answers gather
 * while the thread sleeps. */
#define MANY 8

struct io_loop {
    int epoll,
        bell; /* the bell is an eventfd: there is something in the queue */
    pthread_mutex_t lock; /* guards the queue, and queued and dropping */
    struct io_source *first, *last;
    bool awake; /* looks at the queue before it waits again */

    struct lead lead; /* whose the rest is: a round, which another thread may
                       * have to finish */
    struct spin spin;
    struct epoll_event events[EVENTS_MAX];
    int n, at;               /* of the events, and how many are done */
    struct io_source *taken; /* of the queue, after the events */
};

static struct {
    pthread_mutex_t lock;
    bool forks; /* pthread_atfork is told */
    unsigned n; /* threads that run */
    unsigned next;
    struct io_loop loops[LEADS_MAX];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct io_loop *here; /* this thread leads */
static _Thread_local struct {
    struct io_loop *loop; /* is lent by this thread, or was */
    bool sent;            /* meanwhile */
} away;
static atomic_uint spin_us = IDEM_SPIN_US;

void
idem_threads_set_spin_us(unsigned us)
{
    atomic_store(&spin_us, us < IDEM_SPIN_US_MAX ? us : IDEM_SPIN_US_MAX);
}

int64_t
io_loop_spin_ns(void)
{
    return (int64_t)atomic_load(&spin_us) * NS_PER_US;
}

/* --- The thread --- */

static struct io_source *
take_queue(struct io_loop *loop)
{
    struct io_source *first;

    pthread_mutex_lock(&loop->lock);
    first = loop->first;
    loop->first = loop->last = NULL;
    loop->awake = true;
    pthread_mutex_unlock(&loop->lock);
    return first;
}

/* Nobody queues what is being dropped. */
static bool
unqueue(struct io_loop *loop, struct io_source *source)
{
    bool dropping;

    pthread_mutex_lock(&loop->lock);
    source->queued = false;
    dropping = source->dropping;
    pthread_mutex_unlock(&loop->lock);
    return dropping;
}

static bool
is_dropping(struct io_loop *loop, struct io_source *source)
{
    bool dropping;

    pthread_mutex_lock(&loop->lock);
    dropping = source->dropping;
    pthread_mutex_unlock(&loop->lock);
    return dropping;
}

static bool
may_sleep(struct io_loop *loop)
{
    bool sleeps;

    pthread_mutex_lock(&loop->lock);
    sleeps = loop->first == NULL;
    loop->awake = !sleeps;
    pthread_mutex_unlock(&loop->lock);
    return sleeps;
}

static int64_t
now(void)
{
    const struct idem_clock *clock = idem_clock_system();

    return clock->monotonic_ns(clock);
}

/* Before it sleeps; 0: nothing came. */
static int
look_a_while(struct io_loop *loop)
{
    int n;

    if (!spin_begin(&loop->spin, io_loop_spin_ns(), now()))
        return 0;
    do
        n = epoll_wait(loop->epoll, loop->events, EVENTS_MAX, 0);
    while (n == 0 && spin_goes_on(&loop->spin, now()));
    spin_end(&loop->spin, n > 0, now());
    return n;
}

static int
wait_for_events(struct io_loop *loop)
{
    int n;

    if (!may_sleep(loop))
        return epoll_wait(loop->epoll, loop->events, EVENTS_MAX, 0);
    n = loop->n >= MANY ? 0 : look_a_while(loop);
    return n != 0 ? n : epoll_wait(loop->epoll, loop->events, EVENTS_MAX, -1);
}

static void
run_event(struct io_loop *loop)
{
    const struct epoll_event *event = &loop->events[loop->at++];
    struct io_source *source = event->data.ptr;
    uint64_t rings;

    if (!source)
        (void)!read(loop->bell, &rings, sizeof rings);
    else if (!is_dropping(loop, source))
        source->ready(source, event->events);
}

static void
run_taken(struct io_loop *loop)
{
    struct io_source *source = loop->taken;

    loop->taken = source->next;
    if (!unqueue(loop, source)) {
        source->ready(source, 0);
        return;
    }
    if (source->fd >= 0) {
        (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
        close(source->fd);
    }
    source->dropped(source);
}

/* One source, or a wait. The queue has its turn after the events, as it is
 * then: what is put in meanwhile comes after the next look at the sockets. */
static void
step(struct io_loop *loop)
{
    if (loop->at < loop->n) {
        run_event(loop);
    } else if (loop->taken) {
        run_taken(loop);
        return;
    } else {
        loop->n = wait_for_events(loop);
        loop->at = 0;
    }
    if (loop->at >= loop->n)
        loop->taken = take_queue(loop);
}

/* False: relieved. */
static bool
run_behind(struct io_loop *loop)
{
    bool leads;

    here = NULL;
    away.loop = loop;
    away.sent = false;
    leads = lead_run_behind(&loop->lead);
    away.loop = NULL;
    if (!leads)
        return false;
    here = loop;
    if (away.sent)
        spin_sent(&loop->spin);
    return true;
}

static void *
run(void *with)
{
    struct io_loop *loop = with;

    for (;;) {
        lead_await(&loop->lead);
        here = loop;
        do
            step(loop);
        while (!lead_has_behind() || run_behind(loop));
    }
    return NULL;
}

/* --- Their beginning --- */

static void
before_fork(void)
{
    pthread_mutex_lock(&all.lock);
}

static void
after_fork(void)
{
    pthread_mutex_unlock(&all.lock);
}

/* The threads are not in the child; what they had open is the parent's. */
static void
in_child(void)
{
    for (unsigned i = 0; i < all.n; i++) {
        close(all.loops[i].epoll);
        close(all.loops[i].bell);
    }
    all.n = 0;
    here = NULL;
    lead_forget();
    pthread_mutex_unlock(&all.lock);
}

static bool
open_loop(struct io_loop *loop)
{
    struct epoll_event ring = {.events = EPOLLIN};

    memset(loop, 0, sizeof *loop);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&loop->lock, NULL);
    lead_init(&loop->lead, (unsigned)(loop - all.loops));
    return loop->epoll >= 0 && loop->bell >= 0 &&
           epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->bell, &ring) == 0;
}

static void
close_loop(struct io_loop *loop)
{
    if (loop->epoll >= 0)
        close(loop->epoll);
    if (loop->bell >= 0)
        close(loop->bell);
    lead_fini(&loop->lead);
    pthread_mutex_destroy(&loop->lock);
}

static bool
start_thread(struct io_loop *loop)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, loop) != 0)
        return false;
    pthread_detach(thread);
    return true;
}

/* With one thread only it never lends itself. */
static bool
start_loop(struct io_loop *loop)
{
    if (!open_loop(loop) || !start_thread(loop)) {
        close_loop(loop);
        return false;
    }
    atomic_store(&loop->lead.pair, start_thread(loop));
    return true;
}

static unsigned
wanted(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (processors <= 2)
        return 1;
    return processors / 2 < LEADS_MAX ? (unsigned)(processors / 2) : LEADS_MAX;
}

bool
io_loop_join(struct io_source *source)
{
    pthread_mutex_lock(&all.lock);
    if (!all.forks)
        all.forks = pthread_atfork(before_fork, after_fork, in_child) == 0;
    if (all.n < wanted() && start_loop(&all.loops[all.n]))
        all.n++;
    source->loop = all.n > 0 ? &all.loops[all.next++ % all.n] : NULL;
    pthread_mutex_unlock(&all.lock);
    source->queued = source->dropping = false;
    return source->loop != NULL;
}

/* --- What a source asks --- */

bool
io_loop_watch(struct io_source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    int epoll = source->loop->epoll;

    return epoll_ctl(epoll, EPOLL_CTL_MOD, source->fd, &event) == 0 ||
           (errno == ENOENT &&
            epoll_ctl(epoll, EPOLL_CTL_ADD, source->fd, &event) == 0);
}

bool
io_loop_is_here(const struct io_source *source)
{
    return here == source->loop;
}

void
io_loop_sent(const struct io_source *source)
{
    if (here == source->loop)
        spin_sent(&here->spin);
    else if (away.loop == source->loop)
        away.sent = true;
}

int
io_loop_release(struct io_source *source)
{
    int fd = source->fd;

    source->fd = -1;
    if (fd >= 0)
        (void)epoll_ctl(source->loop->epoll, EPOLL_CTL_DEL, fd, NULL);
    return fd;
}

static void
queue(struct io_source *source, bool drop)
{
    struct io_loop *loop = source->loop;
    bool asleep;

    pthread_mutex_lock(&loop->lock);
    if (source->dropping) {
        pthread_mutex_unlock(&loop->lock);
        return;
    }
    source->dropping = drop;
    if (!source->queued) {
        source->queued = true;
        source->next = NULL;
        if (loop->first)
            loop->last->next = source;
        else
            loop->first = source;
        loop->last = source;
    }
    asleep = !loop->awake && here != loop;
    loop->awake = true;
    pthread_mutex_unlock(&loop->lock);
    if (asleep)
        (void)!write(loop->bell, &(uint64_t){1}, sizeof(uint64_t));
}

void
io_loop_nudge(struct io_source *source)
{
    queue(source, false);
}

void
io_loop_drop(struct io_source *source)
{
    queue(source, true);
}
