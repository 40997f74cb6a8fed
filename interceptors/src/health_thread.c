#include "health.h"

#include <idem/arena.h>
#include <idem/key.h>

#define TELL_NS                                                                \
    100000000 /* between two looks for what watches are to be told */

/* Is the authority there? It is asked for a key that nobody has: the road of
 * every call's first question. */

static bool
answers(struct health *health)
{
    struct idem_ticket ticket = {.mode = IDEM_MODE_TRANSACTION};
    int64_t now_ns = health->clock->monotonic_ns(health->clock);
    bool there;

    ticket.arena = idem_arena_new();
    if (!ticket.arena)
        return true; /* that is not the authority's fault */
    if (idem_key_parse(&ticket.id.key, idem_bytes_of("are-you-there"), NULL) !=
        IDEM_OK)
        IDEM_ASSERT(!"a key of ours");
    ticket.id.scope = "grpc.health.v1.Health";
    ticket.deadline_ns = now_ns + health->timeout_ns;
    idem_record_id_digest(&ticket.id);
    idem_store_ask(health->store, health->store->ops->look, &ticket);
    there = ticket.verdict != IDEM_VERDICT_FAILED;
    idem_arena_free(ticket.arena);
    return there;
}

/* When there are streams to be told: a server that drains waits for them. */
static int64_t
longest_rest_ns(const struct health *health, int64_t until_ns, int64_t now_ns)
{
    if (health->watches && until_ns > now_ns + TELL_NS)
        return now_ns + TELL_NS;
    return until_ns;
}

/* Until it is time to ask again. False: it is over. */
static bool
rest(struct health *health)
{
    const struct idem_clock *clock = health->clock;
    int64_t now_ns = clock->monotonic_ns(clock);
    int64_t until_ns = now_ns + health->interval_ns;
    bool over;

    for (; now_ns < until_ns; now_ns = clock->monotonic_ns(clock)) {
        health_watches_tell(health);
        pthread_mutex_lock(&health->lock);
        if (!health->over)
            clock->wait_until(clock, &health->wake, &health->lock,
                              longest_rest_ns(health, until_ns, now_ns));
        over = health->over;
        pthread_mutex_unlock(&health->lock);
        if (over)
            return false;
    }
    return true;
}

static void *
run(void *with)
{
    struct health *health = with;

    do
        if (health->store)
            atomic_store(&health->away, !answers(health));
    while (rest(health));
    return NULL;
}

enum idem_status
health_start(struct health *health, struct idem_error *err)
{
    if (pthread_create(&health->thread, NULL, run, health) != 0)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no thread for health");
    return IDEM_OK;
}

void
health_stop(struct health *health)
{
    pthread_mutex_lock(&health->lock);
    health->over = true;
    pthread_cond_signal(&health->wake);
    pthread_mutex_unlock(&health->lock);
    pthread_join(health->thread, NULL);
}
