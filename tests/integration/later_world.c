#include "later_world.h"

#include <idem/sqlite.h>

#include <stdlib.h>
#include <string.h>

#define AWAIT_S 20

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

/* With the lock. */
static void
await_change(struct later_world *world)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += AWAIT_S;
    assert_int_equal(pthread_cond_timedwait(&world->change, &world->lock, &end),
                     0);
}

/* --- Handlers --- */

static void
keep(struct idem_context *context, const later_question *question,
     later_answer *answer)
{
    struct later_world *world = idem_context_user(context);
    struct kept *kept = calloc(1, sizeof *kept);

    IDEM_ASSERT(kept);
    *kept = (struct kept){.world = world,
                          .context = context,
                          .question = question,
                          .answer = answer};
    if (world->at_once && world->at_once(kept))
        return;
    pthread_mutex_lock(&world->lock);
    kept->next = world->first;
    world->first = kept;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

static enum idem_status
note(struct idem_context *context, const later_question *question,
     later_answer *answer)
{
    struct later_world *world = idem_context_user(context);

    atomic_fetch_add(&world->notes, 1);
    answer->number = question->number;
    answer->key = idem_context_printf(context, "%s", idem_context_key(context));
    return IDEM_OK;
}

static enum idem_probed
probe(struct idem_context *context, const later_question *question,
      later_answer *answer)
{
    struct later_world *world = idem_context_user(context);

    atomic_fetch_add(&world->probes, 1);
    answer->number = question->number * 10;
    return world->probed;
}

static const struct later_handlers handlers = {
    .ask = keep,
    .act = keep,
    .look = keep,
    .pay = keep,
    .pay_probe = probe,
    .note = note,
};

/* --- The world --- */

static struct idem_store *
open_store(struct later_world *world)
{
    char path[128];
    const struct idem_sqlite_options books = {
        .path = tempdir_file(&world->dir, "later", path, sizeof path)};
    struct idem_store *store;
    struct idem_error err;

    must(idem_sqlite_open(&store, &books, &err), &err);
    return store;
}

void
later_world_open(struct later_world *world,
                 const struct idem_server_options *options)
{
    const struct idem_channel_options channel = {
        .clock = options ? options->clock : NULL};
    struct idem_error err;

    memset(world, 0, sizeof *world);
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->change, NULL);
    tempdir_open(&world->dir);
    must(idem_server_open(&world->server, open_store(world), options, NULL,
                          &err),
         &err);
    must(later_register(world->server, &handlers, world, &err), &err);
    must(idem_server_listen(world->server, "tcp://127.0.0.1:0", &err), &err);
    must(idem_server_start(world->server, &err), &err);
    must(idem_client_open(&world->channel,
                          idem_server_address(world->server, 0), &channel,
                          &err),
         &err);
}

void
later_world_close(struct later_world *world)
{
    idem_channel_close(world->channel);
    idem_server_free(world->server);
    assert_null(world->first);
    tempdir_close(&world->dir);
    pthread_cond_destroy(&world->change);
    pthread_mutex_destroy(&world->lock);
}

void *
later_free_server(void *with)
{
    struct later_world *world = with;

    idem_server_free(world->server);
    world->server = NULL;
    pthread_mutex_lock(&world->lock);
    world->freed = true;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
    return NULL;
}

/* --- Calls --- */

static void
note_end(struct idem_call *call, const later_answer *answer,
         const struct idem_outcome *outcome)
{
    struct later_result *result = idem_call_user(call);
    struct later_world *world = result->world;

    pthread_mutex_lock(&world->lock);
    result->outcome = *outcome;
    result->told++;
    if (answer) {
        result->number = answer->number;
        snprintf(result->key, sizeof result->key, "%s", answer->key);
    }
    world->ended++;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

struct idem_call *
later_start(struct later_world *world, later_start_fn *start, uint64_t number,
            const struct idem_call_options *given, struct later_result *result)
{
    struct idem_call_options options = {0};
    later_question question = LATER_QUESTION_INIT;

    if (given)
        options = *given;
    *result = (struct later_result){.world = world};
    options.user = result;
    question.number = number;
    return start(world->channel, &question, &options, note_end);
}

void
later_begin(struct later_world *world, later_start_fn *method, uint64_t number,
            const struct idem_call_options *options,
            struct later_result *result)
{
    idem_call_release(later_start(world, method, number, options, result));
}

void
later_assert_ended(const struct later_result *result, enum idem_status status,
                   enum idem_effect effect)
{
    if (result->outcome.status != status || result->outcome.effect != effect)
        fail_msg("%s %s: %s", idem_status_name(result->outcome.status),
                 idem_effect_name(result->outcome.effect),
                 result->outcome.message);
    assert_int_equal(result->told, 1);
}

void
later_await_ended(struct later_world *world, unsigned ended)
{
    pthread_mutex_lock(&world->lock);
    while (world->ended < ended)
        await_change(world);
    pthread_mutex_unlock(&world->lock);
}

/* --- What is kept --- */

struct kept *
later_take(struct later_world *world)
{
    struct kept *kept;

    pthread_mutex_lock(&world->lock);
    while (!world->first && !world->freed)
        await_change(world);
    kept = world->first;
    if (kept)
        world->first = kept->next;
    pthread_mutex_unlock(&world->lock);
    return kept;
}

static void
note_given_up(void *with)
{
    struct kept *kept = with;
    struct later_world *world = kept->world;

    pthread_mutex_lock(&world->lock);
    kept->told = true;
    world->n_told++;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

void
later_listen(struct kept *kept)
{
    idem_context_on_cancel(kept->context, note_given_up, kept);
}

void
later_await_told(struct kept *kept)
{
    pthread_mutex_lock(&kept->world->lock);
    while (!kept->told)
        await_change(kept->world);
    pthread_mutex_unlock(&kept->world->lock);
}

void
later_answer_it(struct kept *kept, enum idem_status status)
{
    struct idem_context *context = kept->context;

    kept->answer->number = kept->question->number;
    if (status != IDEM_OK)
        status = idem_context_fail(context, status, "said so");
    idem_context_complete(context, status);
    free(kept);
}
