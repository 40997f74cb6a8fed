#include "once_world.h"

#include "effects.idem.h"

#include <idem/context_once.h>

#include "arena.h"
#include "timer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 10

static void
tell(struct world *world, bool *flag)
{
    pthread_mutex_lock(&world->lock);
    *flag = true;
    pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
}

/* With the lock: wait until the flag or number is there. */
static bool
wait_more(struct world *world, const struct timespec *until)
{
    return pthread_cond_timedwait(&world->changed, &world->lock, until) == 0;
}

static struct timespec
patience(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    return until;
}

/* --- The endpoint --- */

static enum idem_step
send_call(struct call *call)
{
    struct trial *trial = (struct trial *)call;
    struct world *world = trial->world;

    assert_true(idem_call_keep(&call->base, NULL, NULL) ||
                idem_call_interrupted(&call->base));
    call->sent = true;
    context_begin(&trial->context);
    pthread_mutex_lock(&world->lock);
    trial->begun++;
    pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
    return IDEM_WAIT;
}

static void
finish_call(struct call *call)
{
    struct trial *trial = (struct trial *)call;
    struct idem_bytes value;

    trial->outcome = call->base.outcome;
    trial->reply_size = call->base.reply.size;
    if (trial->reply_size > 0)
        memcpy(trial->reply, call->base.reply.data,
               trial->reply_size < sizeof(trial->reply) ? trial->reply_size
                                                        : sizeof(trial->reply));
    if (idem_metadata_get(&call->base.trailers, "x-trailer", &value))
        memcpy(trial->trailer, value.data, value.size);
    tell(trial->world, &trial->finished);
}

static void
free_call(struct call *call)
{
    struct trial *trial = (struct trial *)call;

    context_fini(&trial->context);
    call_fini(call);
    tell(trial->world, &trial->freed);
}

static const struct call_ops trial_ops = {
    .send = send_call,
    .finish = finish_call,
    .free = free_call,
};

/* --- The world --- */

static void
add_once(struct world *world, const struct idem_once_options *options)
{
    struct idem_once_options own =
        options ? *options : (struct idem_once_options){0};

    own.clock = &world->clock.clock;
    own.limit = world->limit;
    assert_int_equal(
        idem_once_new(&world->once, &world->store.store, &own, NULL), IDEM_OK);
    assert_int_equal(chain_add(&world->chain, world->once, NULL), IDEM_OK);
}

int
world_setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    fake_clock_init(&world->clock);
    fake_store_init(&world->store);
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->changed, NULL);
    world->timers = timers_new(&world->clock.clock);
    assert_non_null(world->timers);
    add_once(world, NULL);
    *state = world;
    return 0;
}

void
world_use(struct world *world, const struct idem_once_options *options)
{
    chain_free(&world->chain);
    fake_store_fini(&world->store);
    memset(&world->chain, 0, sizeof(world->chain));
    fake_store_init(&world->store);
    add_once(world, options);
}

void
world_use_limit(struct world *world, const struct idem_limit_options *options)
{
    assert_int_equal(idem_limit_new(&world->limit, options, NULL), IDEM_OK);
    world_use(world, NULL);
    assert_int_equal(chain_add(&world->chain, world->limit, NULL), IDEM_OK);
}

int
world_teardown(void **state)
{
    struct world *world = *state;

    chain_stop(&world->chain);
    chain_free(&world->chain);
    timers_free(world->timers);
    assert_true(world->store.freed);
    fake_store_fini(&world->store);
    fake_clock_fini(&world->clock);
    pthread_cond_destroy(&world->changed);
    pthread_mutex_destroy(&world->lock);
    free(world);
    return 0;
}

struct idem_once_counts
world_counts(struct world *world)
{
    struct idem_once_counts counts;

    idem_once_counts(world->once, &counts);
    return counts;
}

/* --- A call --- */

static struct idem_bytes
text_in(struct idem_arena *arena, const char *text)
{
    struct idem_bytes bytes = idem_bytes_of(text);

    if (text)
        bytes.data = idem_arena_copy(arena, bytes);
    return bytes;
}

void
trial_begin(struct trial *trial, struct world *world,
            const struct trial_options *options)
{
    struct idem_arena *arena = arena_new(4096, 0);
    struct idem_call *base = &trial->call.base;
    effects_add_request *message;

    memset(trial, 0, sizeof(*trial));
    trial->world = world;
    assert_non_null(arena);
    message = idem_arena_alloc(arena, sizeof(*message));
    assert_non_null(message);
    *message = (effects_add_request)EFFECTS_ADD_REQUEST_INIT;
    message->amount = options->amount;
    if (options->order)
        message->order = options->order;
    call_init(&trial->call, &trial_ops, &world->chain, arena);
    context_init(&trial->context, base, NULL);
    base->method = options->method ? options->method : &effects_add_method;
    base->clock = &world->clock.clock;
    base->timers = world->timers;
    base->key = text_in(arena, options->key);
    base->tenant = text_in(arena, options->tenant);
    base->attempt = options->attempt ? options->attempt : 1;
    base->ack_below = options->ack_below;
    base->message = &message->base;
    base->request = text_in(
        arena, options->bytes
                   ? options->bytes
                   : idem_arena_printf(arena, "%d", (int)options->amount));
    if (options->timeout_ms)
        base->deadline_ns =
            world->clock.clock.monotonic_ns(&world->clock.clock) +
            options->timeout_ms * 1000000;
    call_begin(&trial->call);
}

void
trial_await_handler(struct trial *trial, unsigned begun)
{
    struct world *world = trial->world;
    struct timespec until = patience();
    bool there;

    pthread_mutex_lock(&world->lock);
    while (trial->begun < begun && wait_more(world, &until))
        continue;
    there = trial->begun == begun;
    pthread_mutex_unlock(&world->lock);
    assert_true(there);
}

void
trial_return(struct trial *trial, enum idem_status status, const char *reply)
{
    struct idem_call *base = &trial->call.base;

    context_end(&trial->context, status);
    if (status == IDEM_OK)
        base->reply = text_in(trial->context.arena, reply);
    idem_call_resume(base, IDEM_ANSWER);
}

void
trial_probe(struct trial *trial, enum idem_probed probed, const char *reply)
{
    struct idem_call *base = &trial->call.base;

    assert_int_equal(trial->context.task, IDEM_TASK_PROBE);
    context_end_probe(&trial->context, probed);
    if (probed == IDEM_PROBED_NOT_DONE) {
        context_begin(&trial->context);
        return;
    }
    if (base->outcome.status == IDEM_OK)
        base->reply = text_in(base->arena, reply);
    idem_call_resume(base, IDEM_ANSWER);
}

void
trial_refuse(struct trial *trial)
{
    trial->call.sent = false;
    idem_call_fail(&trial->call.base, IDEM_RESOURCE_EXHAUSTED,
                   IDEM_EFFECT_REFUSED, NULL, "the queue is full");
    idem_call_resume(&trial->call.base, IDEM_ANSWER);
}

const struct idem_outcome *
trial_await(struct trial *trial)
{
    struct world *world = trial->world;
    struct timespec until = patience();
    bool freed;

    pthread_mutex_lock(&world->lock);
    while (!trial->freed && wait_more(world, &until))
        continue;
    freed = trial->freed;
    pthread_mutex_unlock(&world->lock);
    assert_true(freed);
    return &trial->outcome;
}

bool
trial_is_finished(struct trial *trial)
{
    bool finished;

    pthread_mutex_lock(&trial->world->lock);
    finished = trial->finished;
    pthread_mutex_unlock(&trial->world->lock);
    return finished;
}
