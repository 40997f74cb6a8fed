#include "shield.h"

#include "retry_backoff.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The thread that talks to Redis. It owns the link and the looks under way;
 * what is new comes in by the lock and the eventfd. Each turn: take what is
 * new, end what is late, send, tell who asked, wait. */

#define MS 1000000LL
#define REPLY_NS (1000 * MS)    /* for a fill's reply, and to log in */
#define READONLY_NS (1000 * MS) /* a link to a replica lives so long */
#define REPLY_SLACK 1024        /* of an entry: what RESP adds, and errors */

static int64_t
now_of(const struct idem_shield *shield)
{
    return shield->clock->monotonic_ns(shield->clock);
}

/* --- The link --- */

/* Every look under way is answered: ask the authority. */
static void
fail_asked(struct idem_shield *shield)
{
    struct idem_shield_look *look;
    unsigned n = 0;

    while ((look = shield_looks_pop(&shield->asked))) {
        look->verdict = IDEM_VERDICT_ABSENT;
        shield_looks_push(&shield->answered, look);
        n++;
    }
    shield_count(&shield->failed, n);
    if (n > 0)
        shield_breaker_failed(&shield->breaker, now_of(shield));
}

static void
connect_later(struct idem_shield *shield)
{
    const struct retry_backoff backoff = {50, 1000, 2000};

    shield->connect_ns =
        now_of(shield) +
        retry_backoff_ns(&backoff, ++shield->connects, shield->clock);
}

/* Whatever went wrong: a late reply must not meet the next command. */
static void
drop_link(struct idem_shield *shield)
{
    redis_link_close(shield->link);
    shield->link = NULL;
    fail_asked(shield);
    connect_later(shield);
}

static void
open_link(struct idem_shield *shield, const char *address)
{
    shield->link =
        redis_link_open(&shield->url, address, shield->max_entry + REPLY_SLACK);
    shield->opened_ns = shield->heard_ns = now_of(shield);
    if (!shield->link)
        connect_later(shield);
}

/* The name is looked up anew each time: after a failover it leads elsewhere. */
static void
start_connect(struct idem_shield *shield)
{
    const char *host = shield->url.host;

    if (!host[0]) {
        open_link(shield, NULL);
    } else if (shield_is_address(host)) {
        open_link(shield, host);
    } else {
        shield->resolve = shield_resolve_start(host, shield->wake_fd);
        if (!shield->resolve)
            connect_later(shield);
    }
}

static void
take_address(struct idem_shield *shield)
{
    char address[SHIELD_ADDRESS_MAX];

    if (!shield_resolve_done(shield->resolve, address))
        return;
    shield_resolve_free(shield->resolve);
    shield->resolve = NULL;
    if (address[0])
        open_link(shield, address);
    else
        connect_later(shield);
}

static void
keep_connected(struct idem_shield *shield, int64_t now_ns)
{
    if (shield->resolve)
        take_address(shield);
    else if (!shield->link && now_ns >= shield->connect_ns)
        start_connect(shield);
}

/* --- Replies --- */

static bool
says(struct idem_bytes text, const char *word)
{
    return memmem(text.data, text.size, word, strlen(word)) != NULL;
}

/* A replica: the name may lead to the primary by now (case B060). Some proxies
 * put another word in front of it. */
static bool
take_fill_reply(struct idem_shield *shield, const struct redis_reply *reply)
{
    if (reply->kind == REDIS_STATUS) {
        shield_count(&shield->fills, 1);
        return true;
    }
    shield_count(&shield->failed, 1);
    if (reply->kind != REDIS_REFUSAL)
        return false;
    return !says(reply->bytes, "READONLY") ||
           now_of(shield) - shield->opened_ns < READONLY_NS;
}

/* A key of somebody else's says nothing about Redis as a whole. */
static bool
is_failure(const struct redis_reply *reply)
{
    return reply->kind == REDIS_REFUSAL && !says(reply->bytes, "WRONGTYPE");
}

static bool
replied(void *self, void *user, const struct redis_reply *reply)
{
    struct idem_shield *shield = self;
    struct idem_shield_look *look;
    bool in_step;

    shield->heard_ns = now_of(shield);
    if (!user)
        return take_fill_reply(shield, reply);
    look = shield_looks_pop(&shield->asked);
    IDEM_ASSERT(look == user);
    in_step = shield_answer(shield, look, reply);
    shield_looks_push(&shield->answered, look);

    if (is_failure(reply) || !in_step) {
        shield_breaker_failed(&shield->breaker, now_of(shield));
    } else {
        shield_breaker_succeeded(&shield->breaker);
        shield->connects = 0;
    }
    return in_step;
}

static void
turn_link(struct idem_shield *shield, short events)
{
    if (shield->link && !redis_link_turn(shield->link, events, replied, shield))
        drop_link(shield);
}

/* --- What is new --- */

static bool
ask(struct idem_shield *shield, struct idem_shield_look *look, int64_t now_ns)
{
    uint8_t key[SHIELD_KEY_SIZE], epoch[IDEM_SHA256_SIZE];

    if (!shield->link || !redis_link_ready(shield->link) ||
        look->expires_ns <= now_ns || !shield_epoch(shield, epoch) ||
        !shield_breaker_allows(&shield->breaker, now_ns))
        return false;
    shield_write_key(key, look->id->digest);
    return redis_link_get(shield->link, (struct idem_bytes){key, sizeof(key)},
                          look);
}

static void
ask_all(struct idem_shield *shield, struct shield_looks *looks, int64_t now_ns)
{
    struct idem_shield_look *look;

    while ((look = shield_looks_pop(looks))) {
        if (ask(shield, look, now_ns)) {
            shield_looks_push(&shield->asked, look);
        } else {
            shield_count(&shield->skipped, 1);
            shield_looks_push(&shield->answered, look);
        }
    }
}

static bool
send_fill(struct idem_shield *shield, const struct shield_fill *fill)
{
    return shield->link && redis_link_ready(shield->link) &&
           redis_link_set(shield->link,
                          (struct idem_bytes){fill->key, sizeof(fill->key)},
                          (struct idem_bytes){fill->entry, fill->size},
                          fill->ttl_ms, NULL);
}

/* One that cannot be sent is forgotten: it is only a shorter way. */
static void
send_fills(struct idem_shield *shield, struct shield_fill *fill)
{
    while (fill) {
        struct shield_fill *next = fill->next;

        if (!send_fill(shield, fill))
            shield_count(&shield->failed, 1);
        free(fill);
        fill = next;
    }
}

/* False when the shield stops. */
static bool
take_new(struct idem_shield *shield, int64_t now_ns)
{
    struct shield_looks looks = {NULL, NULL};
    struct shield_fill *fills;
    bool stopping;

    pthread_mutex_lock(&shield->lock);
    looks.first = shield->new_looks.first;
    shield->new_looks = (struct shield_looks){NULL, NULL};
    fills = shield->new_fills.first;
    shield->new_fills = (struct shield_fills){NULL, NULL, 0};
    stopping = shield->stopping;
    pthread_mutex_unlock(&shield->lock);

    ask_all(shield, &looks, now_ns);
    send_fills(shield, fills);
    return !stopping;
}

/* --- Time --- */

/* How long the link may owe a reply. */
static int64_t
patience_ns(const struct idem_shield *shield)
{
    return shield->budget_ns > REPLY_NS ? shield->budget_ns : REPLY_NS;
}

static void
end_late(struct idem_shield *shield, int64_t now_ns)
{
    const struct idem_shield_look *oldest = shield->asked.first;

    if (!shield->link)
        return;
    if (redis_link_pending(shield->link) == 0)
        shield->heard_ns = now_ns;
    if ((oldest && now_ns >= oldest->expires_ns) ||
        now_ns - shield->heard_ns >= patience_ns(shield))
        drop_link(shield);
}

/* When there is something to do although nothing happens. */
static int64_t
next_ns(const struct idem_shield *shield)
{
    if (shield->asked.first)
        return shield->asked.first->expires_ns;
    if (shield->resolve)
        return INT64_MAX;
    if (!shield->link)
        return shield->connect_ns;
    if (redis_link_pending(shield->link) == 0)
        return INT64_MAX;
    return shield->heard_ns + patience_ns(shield);
}

static void
wait_and_read(struct idem_shield *shield)
{
    struct pollfd fds[2] = {{.fd = shield->wake_fd, .events = POLLIN},
                            {.fd = -1}};
    int64_t at_ns = next_ns(shield), left_ns = at_ns - now_of(shield);
    struct timespec left;
    uint64_t woken;

    if (left_ns < 0)
        left_ns = 0;
    left.tv_sec = left_ns / (1000 * MS);
    left.tv_nsec = left_ns % (1000 * MS);
    if (shield->link) {
        fds[1].fd = redis_link_fd(shield->link);
        fds[1].events = redis_link_events(shield->link);
    }
    if (ppoll(fds, 2, at_ns == INT64_MAX ? NULL : &left, NULL) <= 0)
        return;
    if (fds[0].revents && read(shield->wake_fd, &woken, sizeof(woken)) < 0)
        return; /* somebody took it: there is another turn */
    if (fds[1].revents)
        turn_link(shield, fds[1].revents);
}

static void
tell(struct idem_shield *shield)
{
    struct idem_shield_look *look;

    while ((look = shield_looks_pop(&shield->answered)))
        look->done(look);
}

static void
finish(struct idem_shield *shield)
{
    redis_link_close(shield->link);
    shield_resolve_free(shield->resolve);
    fail_asked(shield);
    tell(shield);
}

void *
shield_run(void *self)
{
    struct idem_shield *shield = self;

    for (;;) {
        int64_t now_ns = now_of(shield);
        bool goes_on;

        end_late(shield, now_ns);
        keep_connected(shield, now_ns);
        goes_on = take_new(shield, now_ns);
        turn_link(shield, 0);
        if (!goes_on)
            break;
        tell(shield);
        wait_and_read(shield);
    }
    finish(shield);
    return NULL;
}
