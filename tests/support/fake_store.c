#include "fake_store.h"

#include "support.h"

#include <stdio.h>
#include <time.h>

#define PATIENCE_S 10

static const char *const names[FAKE_OPS] = {
    "claim", "complete",           "release",    "doubt", "renew", "mark",
    "look",  "tell the watermark", "acknowledge"};

static void
ask(struct idem_store *store, struct idem_ticket *ticket, enum fake_op op)
{
    struct fake_store *fake = (struct fake_store *)store;

    pthread_mutex_lock(&fake->lock);
    ticket->op = op;
    ticket->next = NULL;
    *fake->last = ticket;
    fake->last = &ticket->next;
    fake->asked[op]++;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

static void
claim(struct idem_store *store, struct idem_ticket *ticket)
{
    ask(store, ticket, FAKE_CLAIM);
}

static void
complete(struct idem_store *store, struct idem_ticket *ticket)
{
    ask(store, ticket, FAKE_COMPLETE);
}

static void
release(struct idem_store *store, struct idem_ticket *ticket)
{
    ask(store, ticket, FAKE_RELEASE);
}

static void
doubt(struct idem_store *store, struct idem_ticket *ticket)
{
    ask(store, ticket, FAKE_DOUBT);
}

static void
renew(struct idem_store *store, struct idem_ticket *ticket)
{
    ask(store, ticket, FAKE_RENEW);
}

static void
mark(struct idem_store *store, struct idem_ticket *ticket)
{
    ask(store, ticket, FAKE_MARK);
}

static void
look(struct idem_store *store, struct idem_ticket *ticket)
{
    ask(store, ticket, FAKE_LOOK);
}

static void
watermark(struct idem_store *store, struct idem_ticket *ticket)
{
    ask(store, ticket, FAKE_WATERMARK);
}

static void
acknowledge(struct idem_store *store, struct idem_ticket *ticket)
{
    ask(store, ticket, FAKE_ACKNOWLEDGE);
}

static void
tell_epoch(struct idem_store *store, char *text)
{
    struct fake_store *fake = (struct fake_store *)store;

    pthread_mutex_lock(&fake->lock);
    snprintf(text, IDEM_EPOCH_MAX, "%s", fake->epoch);
    pthread_mutex_unlock(&fake->lock);
}

static void
fake_free(struct idem_store *store)
{
    struct fake_store *fake = (struct fake_store *)store;

    pthread_mutex_lock(&fake->lock);
    assert_null(fake->first);
    assert_false(fake->freed);
    fake->freed = true;
    pthread_mutex_unlock(&fake->lock);
}

static const struct idem_store_ops fake_ops = {
    .name = "fake",
    .claim = claim,
    .complete = complete,
    .release = release,
    .doubt = doubt,
    .renew = renew,
    .mark = mark,
    .look = look,
    .watermark = watermark,
    .acknowledge = acknowledge,
    .epoch = tell_epoch,
    .free = fake_free,
};

void
fake_store_init(struct fake_store *fake)
{
    *fake = (struct fake_store){.store = {&fake_ops}, .epoch = ""};
    pthread_mutex_init(&fake->lock, NULL);
    pthread_cond_init(&fake->changed, NULL);
    fake->last = &fake->first;
}

void
fake_store_fini(struct fake_store *fake)
{
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->lock);
}

struct idem_ticket *
fake_store_take(struct fake_store *fake, enum fake_op op)
{
    struct timespec until;
    struct idem_ticket *ticket;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&fake->lock);
    while (!fake->first)
        if (pthread_cond_timedwait(&fake->changed, &fake->lock, &until) != 0)
            break;
    ticket = fake->first;
    if (ticket && ticket->op == op) {
        fake->first = ticket->next;
        if (!fake->first)
            fake->last = &fake->first;
    }
    pthread_mutex_unlock(&fake->lock);
    if (!ticket)
        fail_msg("nobody asked the store to %s", names[op]);
    if (ticket->op != op)
        fail_msg("the store is asked to %s, not to %s", names[ticket->op],
                 names[op]);
    return ticket;
}

void
fake_store_say(struct idem_ticket *ticket, enum idem_verdict verdict)
{
    ticket->verdict = verdict;
    ticket->done(ticket);
}

void
fake_store_next(struct fake_store *fake, enum fake_op op,
                enum idem_verdict verdict)
{
    fake_store_say(fake_store_take(fake, op), verdict);
}

void
fake_store_fail(struct fake_store *fake, enum fake_op op,
                enum idem_status status)
{
    struct idem_ticket *ticket = fake_store_take(fake, op);

    (void)idem_fail(&ticket->error, status, "the store is away");
    fake_store_say(ticket, IDEM_VERDICT_FAILED);
}

void
fake_store_set_epoch(struct fake_store *fake, const char *epoch)
{
    pthread_mutex_lock(&fake->lock);
    fake->epoch = epoch;
    pthread_mutex_unlock(&fake->lock);
}

bool
fake_store_quiet(struct fake_store *fake)
{
    bool quiet;

    pthread_mutex_lock(&fake->lock);
    quiet = !fake->first;
    pthread_mutex_unlock(&fake->lock);
    return quiet;
}

unsigned
fake_store_asked(struct fake_store *fake, enum fake_op op)
{
    unsigned asked;

    pthread_mutex_lock(&fake->lock);
    asked = fake->asked[op];
    pthread_mutex_unlock(&fake->lock);
    return asked;
}
