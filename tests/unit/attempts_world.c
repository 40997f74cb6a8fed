#include "support.h"

#include "arena.h"
#include "attempts_world.h"
#include "policies.h"
#include "retry.h"
#include "timer.h"

#include <idem/key.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)

struct attempts_call {
    struct call call; /* first */
    struct attempts_world *world;
    unsigned place;
};

static struct attempts_call *
attempts_call_of(const struct idem_call *base)
{
    return (struct attempts_call *)(uintptr_t)base;
}

/* --- The endpoint --- */

static bool
withdraw(struct idem_call *base, void *with)
{
    struct attempts_call *call = attempts_call_of(base);
    struct attempts_world *w = with;
    bool mine;

    pthread_mutex_lock(&w->lock);
    mine = w->sent[call->place] == call;
    if (mine) {
        w->sent[call->place] = NULL;
        w->given_up[call->place] = idem_call_interrupted_by(base);
    }
    pthread_mutex_unlock(&w->lock);
    return mine;
}

static enum idem_step
send_attempt(struct call *base)
{
    static const struct idem_holder holder = {.withdraw = withdraw};
    struct attempts_call *call = attempts_call_of(&base->base);
    struct attempts_world *w = call->world;
    unsigned at;

    if (!idem_call_keep(&base->base, &holder, w))
        return IDEM_ANSWER;
    pthread_mutex_lock(&w->lock);
    at = w->sends++;
    assert_true(at < ATTEMPTS_MAX);
    call->place = at;
    base->sent = true;
    w->sent[at] = call;
    w->numbers[at] = base->base.attempt;
    snprintf(w->keys[at], sizeof w->keys[at], "%.*s", (int)base->base.key.size,
             (const char *)base->base.key.data);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return IDEM_WAIT;
}

static void
copy(char *text, size_t room, struct idem_bytes bytes)
{
    snprintf(text, room, "%.*s", (int)bytes.size, (const char *)bytes.data);
}

static void
finish(struct call *base)
{
    struct attempts_world *w = attempts_call_of(&base->base)->world;
    struct idem_bytes trailer;

    pthread_mutex_lock(&w->lock);
    w->finishes++;
    w->outcome = base->base.outcome;
    copy(w->reply, sizeof w->reply, base->base.reply);
    if (idem_metadata_get(&base->base.trailers, "attempt", &trailer))
        copy(w->trailer, sizeof w->trailer, trailer);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
free_call(struct call *base)
{
    struct attempts_world *w = attempts_call_of(&base->base)->world;

    call_fini(base);
    free(base);
    pthread_mutex_lock(&w->lock);
    w->freed++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static struct call *fork_call(struct call *base);

static const struct call_ops ops = {
    .send = send_attempt,
    .finish = finish,
    .free = free_call,
    .fork = fork_call,
};

static struct attempts_call *
new_call(struct attempts_world *w)
{
    struct attempts_call *call = calloc(1, sizeof *call);

    assert_non_null(call);
    call_init(&call->call, &ops, &w->chain, arena_new(1024, 0));
    call->world = w;
    call->call.base.method = &w->method;
    call->call.base.clock = &w->fake.clock;
    call->call.base.timers = w->timers;
    return call;
}

static struct call *
fork_call(struct call *base)
{
    return &new_call(attempts_call_of(&base->base)->world)->call;
}

/* --- What a test does --- */

void
attempts_world_open(struct attempts_world *w, const char *members)
{
    attempts_world_open_with(w, members, (struct idem_policy_options){0});
}

void
attempts_world_open_with(struct attempts_world *w, const char *members,
                         struct idem_policy_options options)
{
    char json[1024];
    struct idem_interceptor *policy;

    memset(w, 0, sizeof *w);
    fake_clock_init(&w->fake);
    w->timers = timers_new(&w->fake.clock);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->method = (struct idem_method){
        .name = "test.v1.Test/Call",
        .mode = IDEM_MODE_TRANSACTION,
        .key_source = IDEM_KEY_MINTED,
        .window_ms = 86400000,
        .retry = {5, 100, 2000, 2000, 1u << IDEM_UNAVAILABLE},
    };
    snprintf(json, sizeof json, "{\"methodConfig\": [{\"name\": [{}], %s}]}",
             members);
    options.config_json = json;
    options.ignore_environment = true;
    assert_int_equal(idem_policy_new(&policy, &options, NULL), IDEM_OK);
    w->policies = (struct policies *)policy;
    assert_int_equal(chain_add(&w->chain, policy, NULL), IDEM_OK);
    assert_int_equal(chain_add(&w->chain, idem_key_interceptor_new(), NULL),
                     IDEM_OK);
    assert_int_equal(chain_add(&w->chain, retry_new(w->policies), NULL),
                     IDEM_OK);
}

void
attempts_world_close(struct attempts_world *w)
{
    timers_free(w->timers);
    chain_free(&w->chain);
    fake_clock_fini(&w->fake);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

struct call *
attempts_world_call(struct attempts_world *w, int64_t timeout_ms)
{
    struct attempts_call *call = new_call(w);

    call->call.base.request = w->request;
    if (timeout_ms > 0)
        call->call.base.deadline_ns =
            w->fake.clock.monotonic_ns(&w->fake.clock) + timeout_ms * MS;
    call_ref(&call->call);
    return &call->call;
}

struct call *
attempts_world_begin(struct attempts_world *w, int64_t timeout_ms)
{
    struct call *call = attempts_world_call(w, timeout_ms);

    call_begin(call);
    return call;
}

static void
await(struct attempts_world *w, const unsigned *value, unsigned count)
{
    struct timespec until;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&w->lock);
    while (result == 0 && *value < count)
        result = pthread_cond_clockwait(&w->changed, &w->lock, CLOCK_MONOTONIC,
                                        &until);
    assert_true(*value >= count);
    pthread_mutex_unlock(&w->lock);
}

void
attempts_world_await_sends(struct attempts_world *w, unsigned sends)
{
    await(w, &w->sends, sends);
}

void
attempts_world_await_finish(struct attempts_world *w)
{
    await(w, &w->finishes, 1);
}

void
attempts_world_await_freed(struct attempts_world *w, unsigned freed)
{
    await(w, &w->freed, freed);
}

void
attempts_world_pass_ms(struct attempts_world *w, int64_t ms)
{
    int64_t now_ns = w->fake.clock.monotonic_ns(&w->fake.clock);

    fake_clock_await_waiter(&w->fake, now_ns + ms * MS);
    fake_clock_advance_ms(&w->fake, ms);
}

bool
attempts_world_answer(struct attempts_world *w, unsigned i,
                      enum idem_status status, enum idem_effect effect)
{
    struct attempts_call *call;
    struct idem_call *base;
    char number[16];

    pthread_mutex_lock(&w->lock);
    call = w->sent[i];
    w->sent[i] = NULL;
    pthread_mutex_unlock(&w->lock);
    if (!call)
        return false;
    base = &call->call.base;
    idem_call_fail(base, status, effect, NULL, "attempt %u", i);
    snprintf(number, sizeof number, "%u", i);
    assert_int_equal(idem_metadata_add(&base->trailers, base->arena,
                                       idem_bytes_of("attempt"),
                                       idem_bytes_of(number), NULL),
                     IDEM_OK);
    if (status == IDEM_OK)
        base->reply = idem_bytes_of("the reply");
    idem_call_resume(base, IDEM_ANSWER);
    return true;
}
