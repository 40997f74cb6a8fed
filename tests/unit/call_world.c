#include "call_world.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct call_world *
call_world_of(struct idem_call *call)
{
    return ((struct world_call *)call)->world;
}

void
call_world_note(struct call_world *w, char letter)
{
    pthread_mutex_lock(&w->lock);

    size_t used = strlen(w->trail);

    if (used + 1 < sizeof(w->trail))
        w->trail[used] = letter;
    pthread_mutex_unlock(&w->lock);
}

enum idem_step
call_world_answer(struct call *call, const char *text)
{
    call->base.outcome.status = IDEM_OK;
    call->base.outcome.effect = IDEM_EFFECT_COMMITTED;
    call->base.reply = idem_bytes_of(text);
    return IDEM_ANSWER;
}

static enum idem_step
send(struct call *call)
{
    struct call_world *w = call_world_of(&call->base);

    call->sent = true;
    pthread_mutex_lock(&w->lock);
    w->sends++;
    pthread_mutex_unlock(&w->lock);
    return w->send ? w->send(call) : call_world_answer(call, "ok");
}

static void
finish(struct call *call)
{
    struct call_world *w = call_world_of(&call->base);

    pthread_mutex_lock(&w->lock);
    w->finished++;
    w->outcome = call->base.outcome;
    snprintf(w->reply, sizeof(w->reply), "%.*s", (int)call->base.reply.size,
             call->base.reply.data ? (const char *)call->base.reply.data : "");
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
free_call(struct call *call)
{
    struct call_world *w = call_world_of(&call->base);

    call_fini(call);
    free(call);
    pthread_mutex_lock(&w->lock);
    w->freed++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static const struct call_ops world_ops = {
    .send = send,
    .finish = finish,
    .free = free_call,
};

int
call_world_set_up(void **state)
{
    struct call_world *w = calloc(1, sizeof(*w));

    fake_clock_init(&w->fake);
    w->timers = timers_new(&w->fake.clock);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    *state = w;
    return w->timers ? 0 : -1;
}

int
call_world_tear_down(void **state)
{
    struct call_world *w = *state;

    timers_free(w->timers);
    chain_free(&w->chain);
    fake_clock_fini(&w->fake);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return 0;
}

static void
free_fake(struct idem_interceptor *self)
{
    free(self);
}

struct fake *
call_world_add(struct call_world *w, const char *name, enum idem_band band,
               idem_intercept_fn *request, idem_intercept_fn *reply)
{
    struct fake *fake = calloc(1, sizeof(*fake));

    fake->ops = (struct idem_interceptor_ops){
        .name = name,
        .band = band,
        .request = request,
        .reply = reply,
        .free = free_fake,
    };
    fake->base.ops = &fake->ops;
    fake->world = w;
    assert_int_equal(chain_add(&w->chain, &fake->base, NULL), IDEM_OK);
    return fake;
}

struct call *
call_world_call(struct call_world *w)
{
    struct world_call *made = calloc(1, sizeof(*made));

    call_init(&made->call, &world_ops, &w->chain, arena_new(512, 0));
    made->world = w;
    made->call.base.clock = &w->fake.clock;
    made->call.base.timers = w->timers;
    call_ref(&made->call);
    return &made->call;
}

static void
await(struct call_world *w, const unsigned *value, unsigned count)
{
    struct timespec until;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&w->lock);
    while (result == 0 && *value < count)
        result = pthread_cond_clockwait(&w->changed, &w->lock, CLOCK_MONOTONIC,
                                        &until);
    assert_int_equal(*value, count);
    pthread_mutex_unlock(&w->lock);
}

void
call_world_await_finished(struct call_world *w, unsigned count)
{
    await(w, &w->finished, count);
}

void
call_world_await_freed(struct call_world *w, unsigned count)
{
    await(w, &w->freed, count);
}

void
call_world_run(struct call_world *w)
{
    struct call *call = call_world_call(w);
    unsigned before = w->finished;

    call_begin(call);
    call_world_await_finished(w, before + 1);
    call_unref(call);
}

enum idem_step
call_world_pass_down(struct idem_interceptor *self, struct idem_call *call)
{
    call_world_note(call_world_of(call), (char)toupper(self->ops->name[0]));
    return IDEM_NEXT;
}

enum idem_step
call_world_pass_up(struct idem_interceptor *self, struct idem_call *call)
{
    call_world_note(call_world_of(call), (char)tolower(self->ops->name[0]));
    return IDEM_NEXT;
}

void
call_world_put(struct call_world *w, struct call *call)
{
    pthread_mutex_lock(&w->lock);
    w->parked = call;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static bool
withdraw(struct idem_call *call, void *holder)
{
    struct call_world *w = holder;

    pthread_mutex_lock(&w->lock);

    bool here = w->parked && &w->parked->base == call;

    if (here)
        w->parked = NULL;
    pthread_mutex_unlock(&w->lock);
    return here;
}

const struct idem_holder call_world_parking = {.withdraw = withdraw};

enum idem_step
call_world_park(struct idem_interceptor *self, struct idem_call *call)
{
    struct call_world *w = call_world_of(call);

    call_world_note(w, (char)toupper(self->ops->name[0]));
    if (!idem_call_keep(call, &call_world_parking, w))
        return IDEM_ANSWER;
    call_world_put(w, (struct call *)call);
    return IDEM_WAIT;
}

struct call *
call_world_unpark(struct call_world *w)
{
    pthread_mutex_lock(&w->lock);

    struct call *call = w->parked;

    w->parked = NULL;
    pthread_mutex_unlock(&w->lock);
    return call;
}
