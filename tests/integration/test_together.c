#include "echo_world.h"

#include <stdlib.h>

#include <idem/call.h>
#include <idem/server.h>

/* Calls that one thread resumes at once: what they hand to workers and what
 * they send goes out together, and none of it is lost. */

#define CHANNELS 3
#define CALLS 120 /* over all channels: more than are gathered in one go */

/* Keeps calls until all have come. */
struct crowd {
    struct idem_interceptor base;
    pthread_mutex_t lock;
    pthread_cond_t all_came;
    struct idem_call *calls[CALLS];
    unsigned n;
    enum idem_step step; /* how they go on */
};

static bool
stay(struct idem_call *call, void *with)
{
    (void)call;
    (void)with;
    return false;
}

static const struct idem_holder holder = {.withdraw = stay};

static enum idem_step
keep(struct idem_interceptor *self, struct idem_call *call)
{
    struct crowd *crowd = (struct crowd *)self;

    if (!idem_call_keep(call, &holder, crowd))
        return IDEM_ANSWER;
    pthread_mutex_lock(&crowd->lock);
    crowd->calls[crowd->n++] = call;
    if (crowd->n == CALLS)
        pthread_cond_signal(&crowd->all_came);
    pthread_mutex_unlock(&crowd->lock);
    return IDEM_WAIT;
}

static void
crowd_free(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops crowd_ops = {
    .name = "crowd",
    .band = IDEM_BAND_AUTH,
    .request = keep,
    .free = crowd_free,
};

static struct crowd *
crowd_new(enum idem_step step)
{
    struct crowd *crowd = calloc(1, sizeof(*crowd));

    assert_non_null(crowd);
    crowd->base.ops = &crowd_ops;
    crowd->step = step;
    pthread_mutex_init(&crowd->lock, NULL);
    pthread_cond_init(&crowd->all_came, NULL);
    return crowd;
}

static void
resume_each(void *with)
{
    const struct crowd *crowd = with;

    for (unsigned i = 0; i < CALLS; i++) {
        if (crowd->step == IDEM_ANSWER)
            idem_call_fail(crowd->calls[i], IDEM_NOT_FOUND, IDEM_EFFECT_REFUSED,
                           NULL, "not here");
        idem_call_resume(crowd->calls[i], crowd->step);
    }
}

/* As a store's thread would, inside what another one does. */
static void
resume_inside(void *with)
{
    idem_call_resume_all(resume_each, with);
}

static void
await_all(struct crowd *crowd)
{
    pthread_mutex_lock(&crowd->lock);
    while (crowd->n < CALLS)
        pthread_cond_wait(&crowd->all_came, &crowd->lock);
    pthread_mutex_unlock(&crowd->lock);
}

static void
run(const struct echo_options *options, enum idem_step step,
    void (*resume)(void *with), struct echo_result results[CALLS])
{
    struct crowd *crowd = crowd_new(step);
    struct idem_channel *channels[CHANNELS];
    struct echo_world world;

    echo_world_open(&world, options);
    assert_int_equal(idem_server_add(world.server, &crowd->base, NULL),
                     IDEM_OK);
    assert_int_equal(idem_server_start(world.server, NULL), IDEM_OK);
    for (unsigned i = 0; i < CHANNELS; i++)
        channels[i] = echo_world_channel(&world);
    for (unsigned i = 0; i < CALLS; i++)
        echo_world_start(&world, channels[i % CHANNELS], echo_echo_async, i, 10,
                         NULL, &results[i]);
    await_all(crowd);
    idem_call_resume_all(resume, crowd);
    echo_world_await(&world);
    for (unsigned i = 0; i < CHANNELS; i++)
        idem_channel_close(channels[i]);
    echo_world_close(&world);
}

static void
their_handlers_all_run(void **state)
{
    static struct echo_result results[CALLS];
    const struct echo_options options = {.not_started = true};

    (void)state;
    run(&options, IDEM_NEXT, resume_each, results);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_echoed(&results[i], i, 10);
        echo_result_fini(&results[i]);
    }
}

static void
their_answers_all_leave(void **state)
{
    static struct echo_result results[CALLS];
    const struct echo_options options = {.not_started = true};

    (void)state;
    run(&options, IDEM_ANSWER, resume_inside, results);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_ended(&results[i], IDEM_NOT_FOUND, IDEM_EFFECT_REFUSED);
        echo_result_fini(&results[i]);
    }
}

static void
those_without_room_are_refused(void **state)
{
    static struct echo_result results[CALLS];
    const struct echo_options options = {
        .not_started = true,
        .server = {.workers = 1, .max_queued = 2},
    };
    unsigned refused = 0;

    (void)state;
    run(&options, IDEM_NEXT, resume_each, results);
    for (unsigned i = 0; i < CALLS; i++) {
        if (results[i].status == IDEM_RESOURCE_EXHAUSTED)
            refused++;
        else
            assert_echoed(&results[i], i, 10);
        echo_result_fini(&results[i]);
    }
    assert_true(refused > 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(their_handlers_all_run),
        cmocka_unit_test(their_answers_all_leave),
        cmocka_unit_test(those_without_room_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
