#include "places_world.h"

#include "channel_inside.h"

#include <idem/call.h>
#include <idem/retry.h>
#include <idem/server.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AWAIT_S 20

/* --- A server --- */

static enum idem_status
echo(struct idem_context *context, const echo_echo_request *request,
     echo_echo_reply *reply)
{
    struct site *place = idem_context_user(context);

    atomic_fetch_add(&place->ran, 1);
    reply->number = request->number;
    return IDEM_OK;
}

static enum idem_status
block(struct idem_context *context, const echo_echo_request *request,
      echo_echo_reply *reply)
{
    struct site *place = idem_context_user(context);
    struct places_world *world = place->world;

    reply->number = request->number;
    pthread_mutex_lock(&world->lock);
    place->inside++;
    pthread_cond_broadcast(&world->change);
    while (!world->gate)
        pthread_cond_wait(&world->change, &world->lock);
    place->inside--;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
    return IDEM_OK;
}

static enum idem_status
fail_as_asked(struct idem_context *context, const echo_fail_request *request,
              echo_echo_reply *reply)
{
    (void)reply;
    return idem_context_fail(context, (enum idem_status)request->status, "%s",
                             request->message);
}

static const struct echo_handlers handlers = {
    .echo = echo,
    .echo_inline = echo,
    .fail = fail_as_asked,
    .block = block,
};

struct refuser {
    struct idem_interceptor base;
    struct site *place;
};

static enum idem_step
refuse(struct idem_interceptor *self, struct idem_call *call)
{
    struct site *place = ((struct refuser *)self)->place;

    if (!atomic_load(&place->refuses))
        return IDEM_NEXT;
    atomic_fetch_add(&place->refused, 1);
    idem_call_fail(call, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED, NULL,
                   "not here");
    return IDEM_ANSWER;
}

static void
free_refuser(struct idem_interceptor *self)
{
    free(self);
}

static struct idem_interceptor *
new_refuser(struct site *place)
{
    static const struct idem_interceptor_ops ops = {
        .name = "refuser",
        .band = IDEM_BAND_LIMIT,
        .request = refuse,
        .free = free_refuser,
    };
    struct refuser *refuser = calloc(1, sizeof *refuser);

    assert_non_null(refuser);
    refuser->base.ops = &ops;
    refuser->place = place;
    return &refuser->base;
}

void
site_start(struct site *place)
{
    struct idem_error err = {0};

    assert_int_equal(idem_server_new(&place->server, NULL, &err), IDEM_OK);
    assert_int_equal(idem_server_add(place->server, new_refuser(place), &err),
                     IDEM_OK);
    assert_int_equal(echo_register(place->server, &handlers, place, &err),
                     IDEM_OK);
    assert_int_equal(idem_server_listen(place->server, place->address, &err),
                     IDEM_OK);
    assert_int_equal(idem_server_start(place->server, &err), IDEM_OK);
    snprintf(place->address, sizeof place->address, "%s",
             idem_server_address(place->server, 0));
}

void
site_stop(struct site *place)
{
    idem_server_free(place->server);
    place->server = NULL;
}

/* --- The world --- */

void
places_world_open(struct places_world *world, unsigned n,
                  const struct idem_channel_options *options)
{
    size_t at = 0;
    struct idem_error err = {0};
    bool first = !options || options->balancer == IDEM_BALANCER_PICK_FIRST;

    memset(world, 0, sizeof *world);
    world->n = n;
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->change, NULL);
    for (unsigned i = 0; i < n; i++) {
        struct site *place = &world->place[i];

        place->world = world;
        snprintf(place->address, sizeof place->address, "tcp://127.0.0.1:0");
        site_start(place);
        at += (size_t)snprintf(world->target + at, sizeof world->target - at,
                               "%s%s", i ? "," : "list://", place->address);
    }
    assert_int_equal(
        idem_channel_new(&world->channel, world->target, options, &err),
        IDEM_OK);
    assert_int_equal(idem_channel_add(world->channel, idem_retry_new(), &err),
                     IDEM_OK);
    places_await_ready(world, first ? 1 : n);
}

void
places_world_close(struct places_world *world)
{
    places_open_gate(world);
    idem_channel_close(world->channel);
    for (unsigned i = 0; i < world->n; i++)
        site_stop(&world->place[i]);
    pthread_cond_destroy(&world->change);
    pthread_mutex_destroy(&world->lock);
}

static struct timespec
in_seconds(time_t seconds)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += seconds;
    return end;
}

unsigned
places_flying(struct places_world *world)
{
    unsigned flying;

    pthread_mutex_lock(&world->channel->lock);
    flying = world->channel->n_flying;
    pthread_mutex_unlock(&world->channel->lock);
    return flying;
}

void
places_await_ready(struct places_world *world, unsigned n)
{
    struct idem_channel *channel = world->channel;
    struct timespec end = in_seconds(AWAIT_S);
    int rc = 0;

    pthread_mutex_lock(&channel->lock);
    while (channel->n_ready != n && rc == 0)
        rc = pthread_cond_timedwait(&channel->restated, &channel->lock, &end);
    pthread_mutex_unlock(&channel->lock);
    assert_int_equal(rc, 0);
}

void
places_await_inside(struct places_world *world, unsigned place, unsigned inside)
{
    struct timespec end = in_seconds(AWAIT_S);
    int rc = 0;

    pthread_mutex_lock(&world->lock);
    while (world->place[place].inside != inside && rc == 0)
        rc = pthread_cond_timedwait(&world->change, &world->lock, &end);
    pthread_mutex_unlock(&world->lock);
    assert_int_equal(rc, 0);
}

/* With the lock. */
static unsigned
count_inside(const struct places_world *world, unsigned at_place[PLACES_MAX])
{
    unsigned inside = 0;

    for (unsigned i = 0; i < world->n; i++) {
        at_place[i] = world->place[i].inside;
        inside += at_place[i];
    }
    return inside;
}

void
places_await_all_inside(struct places_world *world, unsigned inside,
                        unsigned at_place[PLACES_MAX])
{
    struct timespec end = in_seconds(AWAIT_S);
    int rc = 0;

    pthread_mutex_lock(&world->lock);
    while (count_inside(world, at_place) != inside && rc == 0)
        rc = pthread_cond_timedwait(&world->change, &world->lock, &end);
    pthread_mutex_unlock(&world->lock);
    assert_int_equal(rc, 0);
}

void
places_open_gate(struct places_world *world)
{
    pthread_mutex_lock(&world->lock);
    world->gate = true;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

const char *
places_ran(struct places_world *world)
{
    static _Thread_local char text[PLACES_MAX * 12];
    size_t at = 0;

    for (unsigned i = 0; i < world->n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u",
                               i ? " " : "", atomic_load(&world->place[i].ran));
    return text;
}

/* --- Calls --- */

enum idem_status
places_echo(struct places_world *world, const char *key,
            struct idem_outcome *outcome)
{
    const struct idem_call_options options = {.key = key};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    return echo_echo(world->channel, &request, NULL, &options, outcome);
}

static void
ignore(struct idem_call *call, const echo_echo_reply *reply,
       const struct idem_outcome *outcome)
{
    struct idem_outcome *told = idem_call_user(call);

    (void)reply;
    if (told)
        *told = *outcome;
}

struct idem_call *
places_block(struct places_world *world, struct idem_outcome *told,
             const struct idem_call_options *given)
{
    struct idem_call_options options = {0};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    if (given)
        options = *given;
    options.user = told;
    return echo_block_async(world->channel, &request, &options, ignore);
}
