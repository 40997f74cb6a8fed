#include "calls.h"

#include "dice.h"
#include "effects.h"

#include <idem/key.h>
#include <idem/reason.h>
#include <idem/resolve.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECENT 8      /* keys that are called again soon */
#define OTHER 1000000 /* more than there are keys */
#define WINDOW_MS 3600000
#define SETTLE_TRIES 60
#define SETTLE_MS 5000
#define EFFECTS_MAX (IDEM_EFFECT_IN_DOUBT + 1)

typedef enum idem_status method_fn(struct idem_channel *channel,
                                   const effects_add_request *request,
                                   effects_add_reply **reply,
                                   const struct idem_call_options *options,
                                   struct idem_outcome *outcome);

static const struct {
    method_fn *call;
    const struct idem_method *method;
    enum checker_runs runs;
} methods[] = {
    {effects_add, &effects_add_method, CHECKER_RUN_ONCE},
    {effects_add_always, &effects_add_always_method, CHECKER_RUN_ONCE},
    {effects_add_grouped, &effects_add_grouped_method, CHECKER_RUN_ONCE},
    {effects_add_stated, &effects_add_stated_method, CHECKER_RUN_ONCE},
    {effects_push, &effects_push_method, CHECKER_RUN_ONCE},
    {effects_push_step, &effects_push_step_method, CHECKER_RUN_ONCE},
    {effects_push_again, &effects_push_again_method, CHECKER_RUN_AGAIN},
    {effects_push_probe, &effects_push_probe_method, CHECKER_RUN_AGAIN},
};
#define METHODS (sizeof(methods) / sizeof(methods[0]))

struct entry {
    unsigned key;
    char reason[IDEM_REASON_MAX];
    struct checker_call told;
    struct entry *next;
};

struct calls {
    struct site *site;
    const struct chaos_options *options;
    const struct idem_clock *clock;
    pthread_t *threads;
    char (*keys)[IDEM_KEY_MAX + 1];

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t ended;
    struct dice dice;
    unsigned used; /* keys */
    unsigned made, running;
    unsigned settled; /* keys taken by the last round */
    bool over;        /* no more new ones */
    struct entry *entries;
};

/* What an attempt is: drawn under the lock, by the seed. */
struct plan {
    unsigned key, server;
    int64_t timeout_ms;
    bool abandon;
    bool other; /* another request under the key (fault 45) */
};

/* --- One attempt --- */

/* A key has one request, and another one that somebody sends by mistake: whose
 * it is, is who comes first. */
static effects_add_request
request_of(const struct calls *calls, unsigned key, bool other)
{
    uint64_t luck = dice_mix(calls->options->seed ^ key);
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = key + 1 + (other ? OTHER : 0);
    request.hold_ms = luck % 8 == 0 ? (int64_t)(luck >> 8) % 400 : 0;
    if ((methods[key % METHODS].call == effects_add ||
         methods[key % METHODS].call == effects_add_grouped) &&
        luck % 4 == 3)
        request.fail_with = IDEM_FAILED_PRECONDITION;
    return request;
}

static void
keep(struct calls *calls, unsigned key, const struct checker_call *told)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    assert_non_null(entry);
    entry->key = key;
    entry->told = *told;
    snprintf(entry->reason, sizeof(entry->reason), "%s", told->reason);
    pthread_mutex_lock(&calls->lock);
    entry->next = calls->entries;
    calls->entries = entry;
    calls->made++;
    pthread_mutex_unlock(&calls->lock);
}

static uint64_t
digest_of(const effects_add_reply *reply)
{
    return dice_mix((uint64_t)reply->number << 32 ^ (uint64_t)reply->amount);
}

/* True: what became of the key is known. */
static bool
call(struct calls *calls, struct plan *plan)
{
    effects_add_request request = request_of(calls, plan->key, plan->other);
    const struct idem_call_options options = {.key = calls->keys[plan->key],
                                              .timeout_ms = plan->timeout_ms,
                                              .wait_for_ready = true};
    struct checker_call told = {.began_ns =
                                    calls->clock->monotonic_ns(calls->clock)};
    effects_add_reply *reply = NULL;
    struct idem_outcome outcome;

    told.status = methods[plan->key % METHODS].call(
        calls->site->servers[plan->server].channel, &request, &reply, &options,
        &outcome);
    told.ended_ns = calls->clock->monotonic_ns(calls->clock);
    told.effect = outcome.effect;
    told.final = outcome.final;
    told.reason = outcome.reason;
    if (reply) {
        told.reply = digest_of(reply);
        told.foreign = reply->amount != request.amount;
    }
    effects_add_reply_free(reply);
    keep(calls, plan->key, &told);
    if (strcmp(outcome.reason, IDEM_KEY_REUSED) == 0) {
        plan->other = !plan->other;
        return false;
    }
    return outcome.final || strcmp(outcome.reason, IDEM_KEY_IN_DOUBT) == 0;
}

/* Fault 74: whoever abandons is told a final no, or what it lost to. */
static void
abandon(struct calls *calls, const struct plan *plan)
{
    struct checker_call told = {
        .began_ns = calls->clock->monotonic_ns(calls->clock),
        .status = IDEM_FAILED_PRECONDITION,
        .effect = IDEM_EFFECT_REFUSED,
        .final = true,
        .reason = IDEM_KEY_ABANDONED,
    };
    struct idem_resolution resolution = {0};
    struct idem_error err;
    enum idem_status status = idem_abandon(
        calls->site->servers[plan->server].channel,
        methods[plan->key % METHODS].method, calls->keys[plan->key],
        plan->timeout_ms, &resolution, &err);

    told.ended_ns = calls->clock->monotonic_ns(calls->clock);
    if (status == IDEM_OK && resolution.state == IDEM_RESOLVED_ABANDONED)
        keep(calls, plan->key, &told);
    idem_resolution_fini(&resolution);
}

/* --- The stream --- */

static unsigned
draw_key(struct calls *calls)
{
    bool may_be_new = calls->used < calls->options->keys;
    unsigned luck = dice_roll(&calls->dice, 100);

    if (calls->used == 0 || (may_be_new && luck < 35))
        return calls->used++;
    if (luck < 90 && calls->used > RECENT)
        return calls->used - 1 - dice_roll(&calls->dice, RECENT);
    return dice_roll(&calls->dice, calls->used);
}

static void
make_key(struct calls *calls, unsigned key)
{
    if (key % 2 == 0)
        snprintf(calls->keys[key], sizeof(calls->keys[key]),
                 "chaos-%" PRIx64 "-%u", calls->options->seed, key);
    else
        idem_key_mint(calls->keys[key], &calls->site->clock.clock, WINDOW_MS);
}

/* False: there is nothing more to call. */
static bool
draw(struct calls *calls, struct plan *plan)
{
    bool drawn;

    pthread_mutex_lock(&calls->lock);
    drawn = !calls->over;
    if (drawn) {
        plan->key = draw_key(calls);
        if (calls->keys[plan->key][0] == '\0')
            make_key(calls, plan->key);
        plan->server = dice_roll(&calls->dice, SITE_SERVERS);
        plan->timeout_ms = 50 + dice_roll(&calls->dice, 4000);
        plan->abandon = dice_roll(&calls->dice, 40) == 0;
        plan->other = dice_roll(&calls->dice, 12) == 0;
    }
    pthread_mutex_unlock(&calls->lock);
    return drawn;
}

static bool
draw_to_settle(struct calls *calls, unsigned *key)
{
    bool drawn;

    pthread_mutex_lock(&calls->lock);
    drawn = calls->settled < calls->used;
    if (drawn)
        *key = calls->settled++;
    pthread_mutex_unlock(&calls->lock);
    return drawn;
}

static void *
work(void *with)
{
    struct calls *calls = with;
    struct plan plan;

    while (draw(calls, &plan)) {
        if (plan.abandon)
            abandon(calls, &plan);
        else
            (void)call(calls, &plan);
    }
    pthread_mutex_lock(&calls->lock);
    calls->running--;
    pthread_cond_signal(&calls->ended);
    pthread_mutex_unlock(&calls->lock);
    return NULL;
}

static void *
settle(void *with)
{
    struct calls *calls = with;
    struct plan plan = {.timeout_ms = SETTLE_MS};

    while (draw_to_settle(calls, &plan.key)) {
        for (unsigned i = 0; i < SETTLE_TRIES; i++) {
            plan.server = (plan.key + i) % SITE_SERVERS;
            if (call(calls, &plan))
                break;
        }
    }
    return NULL;
}

/* --- All of them --- */

static void
start_threads(struct calls *calls, void *(*run)(void *))
{
    for (unsigned i = 0; i < calls->options->clients; i++)
        assert_int_equal(pthread_create(&calls->threads[i], NULL, run, calls),
                         0);
}

static void
join_threads(struct calls *calls)
{
    for (unsigned i = 0; i < calls->options->clients; i++)
        pthread_join(calls->threads[i], NULL);
}

struct calls *
calls_start(struct site *site, const struct chaos_options *options)
{
    struct calls *calls = calloc(1, sizeof(*calls));

    assert_non_null(calls);
    calls->site = site;
    calls->options = options;
    calls->clock = idem_clock_system();
    calls->dice.state = options->seed;
    calls->keys = calloc(options->keys, sizeof(*calls->keys));
    calls->threads = calloc(options->clients, sizeof(*calls->threads));
    assert_true(calls->keys && calls->threads);
    calls->running = options->clients;
    pthread_mutex_init(&calls->lock, NULL);
    pthread_cond_init(&calls->ended, NULL);
    start_threads(calls, work);
    return calls;
}

bool
calls_wait(struct calls *calls, unsigned ms)
{
    int64_t until_ns =
        calls->clock->monotonic_ns(calls->clock) + (int64_t)ms * 1000000;
    bool running;

    pthread_mutex_lock(&calls->lock);
    while (calls->running > 0 &&
           calls->clock->monotonic_ns(calls->clock) < until_ns)
        calls->clock->wait_until(calls->clock, &calls->ended, &calls->lock,
                                 until_ns);
    running = calls->running > 0;
    pthread_mutex_unlock(&calls->lock);
    return running;
}

void
calls_settle(struct calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    calls->over = true;
    pthread_mutex_unlock(&calls->lock);
    join_threads(calls);
    start_threads(calls, settle);
    join_threads(calls);
}

unsigned
calls_made(struct calls *calls)
{
    unsigned made;

    pthread_mutex_lock(&calls->lock);
    made = calls->made;
    pthread_mutex_unlock(&calls->lock);
    return made;
}

unsigned
calls_keys(struct calls *calls)
{
    unsigned used;

    pthread_mutex_lock(&calls->lock);
    used = calls->used;
    pthread_mutex_unlock(&calls->lock);
    return used;
}

void
calls_tell(struct calls *calls, struct checker *checker)
{
    for (unsigned key = 0; key < calls->used; key++)
        checker_key(checker, calls->keys[key], methods[key % METHODS].runs,
                    INT64_MAX);
    for (struct entry *entry = calls->entries; entry; entry = entry->next) {
        entry->told.key = calls->keys[entry->key];
        entry->told.reason = entry->reason;
        checker_call(checker, &entry->told);
    }
}

void
calls_print(struct calls *calls)
{
    unsigned effects[EFFECTS_MAX] = {0}, finals = 0, made = 0;

    for (struct entry *entry = calls->entries; entry; entry = entry->next) {
        effects[entry->told.effect]++;
        finals += entry->told.final;
        made++;
    }
    printf("%-28s %8u\n%-28s %8u\n%-28s %8u\n", "keys", calls->used, "calls",
           made, "… final", finals);
    for (unsigned i = 0; i < EFFECTS_MAX; i++)
        printf("… %-26s %8u\n", idem_effect_name((enum idem_effect)i),
               effects[i]);
}

void
calls_free(struct calls *calls)
{
    while (calls->entries) {
        struct entry *entry = calls->entries;

        calls->entries = entry->next;
        free(entry);
    }
    pthread_cond_destroy(&calls->ended);
    pthread_mutex_destroy(&calls->lock);
    free(calls->threads);
    free(calls->keys);
    free(calls);
}
