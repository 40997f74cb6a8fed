/* Calls that handlers make, to another server: their keys follow from the call
 * that the handler answers, its time and its trace go with them (decision 27).
 */
#include "relay_world.h"

#include <idem/policy.h>
#include <idem/reason.h>
#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static const struct idem_call_options keyed = {.key = "order-1",
                                               .timeout_ms = 30000};

static enum idem_status
call_keyed(struct relay_world *world)
{
    struct idem_outcome outcome;
    enum idem_status status = relay_call(world, &keyed, &outcome);

    if (status != IDEM_OK)
        print_message("%s\n", outcome.message);
    return status;
}

/* --- Keys --- */

static enum idem_status
add_two_and_fail_once(struct relay_world *world, struct idem_context *context,
                      unsigned run)
{
    (void)context;
    if (relay_add(world, 10, NULL) != IDEM_OK ||
        relay_add(world, 20, NULL) != IDEM_OK)
        return IDEM_INTERNAL;
    return run == 1 ? IDEM_UNAVAILABLE : IDEM_OK;
}

static void
a_handler_that_runs_again_repeats_the_keys_of_its_calls(void **state)
{
    struct relay_world *world = *state;

    world->work = add_two_and_fail_once;
    assert_int_equal(call_keyed(world), IDEM_OK);
    assert_int_equal(world->runs, 2);
    assert_int_equal(relay_world_seen(world), 4);
    assert_string_equal(world->seen[0].key, world->seen[2].key);
    assert_string_equal(world->seen[1].key, world->seen[3].key);
    assert_string_not_equal(world->seen[0].key, world->seen[1].key);
    assert_int_equal(stage_effects(world->behind), 2);
}

static enum idem_status
add_in_another_order(struct relay_world *world, struct idem_context *context,
                     unsigned run)
{
    struct idem_outcome outcome;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    if (run == 1) {
        if (relay_add(world, 10, NULL) != IDEM_OK ||
            relay_add(world, 20, NULL) != IDEM_OK)
            return IDEM_INTERNAL;
        return IDEM_UNAVAILABLE;
    }
    request.amount = 20;
    (void)effects_add(world->to_behind, &request, NULL, NULL, &outcome);
    return strcmp(outcome.reason, IDEM_KEY_REUSED) == 0
               ? idem_context_fail(context, IDEM_FAILED_PRECONDITION, "told")
               : IDEM_OK;
}

static void
calls_in_another_order_are_refused_and_not_done_twice(void **state)
{
    struct relay_world *world = *state;

    world->work = add_in_another_order;
    assert_int_equal(call_keyed(world), IDEM_FAILED_PRECONDITION);
    assert_int_equal(stage_effects(world->behind), 2);
}

static enum idem_status
add_named(struct relay_world *world, struct idem_context *context, unsigned run)
{
    const struct idem_call_options fee = {.step = "fee"};
    const struct idem_call_options price = {.step = "price"};

    (void)context;
    if (run == 1) {
        if (relay_add(world, 1, &fee) != IDEM_OK ||
            relay_add(world, 20, &price) != IDEM_OK)
            return IDEM_INTERNAL;
        return IDEM_UNAVAILABLE;
    }
    if (relay_add(world, 20, &price) != IDEM_OK ||
        relay_add(world, 1, &fee) != IDEM_OK)
        return IDEM_INTERNAL;
    return IDEM_OK;
}

static void
calls_with_names_may_change_their_order(void **state)
{
    struct relay_world *world = *state;

    world->work = add_named;
    assert_int_equal(call_keyed(world), IDEM_OK);
    assert_string_equal(world->seen[0].key, world->seen[3].key);
    assert_string_equal(world->seen[1].key, world->seen[2].key);
    assert_int_equal(stage_effects(world->behind), 2);
}

static enum idem_status
add_one(struct relay_world *world, struct idem_context *context, unsigned run)
{
    (void)context;
    (void)run;
    return relay_add(world, 10, NULL);
}

static void
one_key_of_two_methods_makes_two_children(void **state)
{
    struct relay_world *world = *state;
    relay_forward_request request = RELAY_FORWARD_REQUEST_INIT;

    world->work = add_one;
    assert_int_equal(call_keyed(world), IDEM_OK);
    assert_int_equal(
        relay_forward_too(world->channel, &request, NULL, &keyed, NULL),
        IDEM_OK);
    assert_string_not_equal(world->seen[0].key, world->seen[1].key);
    assert_int_equal(stage_effects(world->behind), 2);
}

static enum idem_status
add_with_own_keys(struct relay_world *world, struct idem_context *context,
                  unsigned run)
{
    const struct idem_call_options own = {.key = "own"};
    const struct idem_call_options alone = {.no_parent = true};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    (void)context;
    (void)run;
    request.order = "order-in-the-request";
    if (relay_add(world, 1, &own) != IDEM_OK ||
        effects_add_order(world->to_behind, &request, NULL, NULL, NULL) !=
            IDEM_OK ||
        effects_add_numbered(world->to_behind, &request, NULL, NULL, NULL) !=
            IDEM_OK ||
        relay_add(world, 2, &alone) != IDEM_OK)
        return IDEM_INTERNAL;
    return IDEM_OK;
}

static void
a_key_of_the_callers_or_of_fields_wins_and_one_can_go_without(void **state)
{
    struct relay_world *world = *state;

    world->work = add_with_own_keys;
    assert_int_equal(call_keyed(world), IDEM_OK);
    assert_int_equal(relay_world_seen(world), 4);
    assert_string_equal(world->seen[0].key, "own");
    assert_memory_equal(world->seen[1].key, "idf_", 4);
    /* a session would give a second run another number */
    assert_memory_equal(world->seen[2].key, "idd_", 4);
    assert_memory_equal(world->seen[3].key, "idk_", 4);
}

static void
a_parent_without_a_key_gives_none(void **state)
{
    struct relay_world *world = *state;
    relay_forward_request request = RELAY_FORWARD_REQUEST_INIT;

    world->work = add_one;
    for (int i = 0; i < 2; i++)
        assert_int_equal(relay_look(world->channel, &request, NULL, NULL, NULL),
                         IDEM_OK);
    assert_string_not_equal(world->seen[0].key, world->seen[1].key);
    assert_int_equal(stage_effects(world->behind), 2);
}

struct helper {
    pthread_t thread;
    struct relay_world *world;
    struct idem_context *context;
    const char *step;
    enum idem_status status;
};

static void *
add_on_a_thread(void *with)
{
    struct helper *helper = with;
    const struct idem_call_options options = {.parent = helper->context,
                                              .step = helper->step};

    helper->status = relay_add(helper->world, 10, &options);
    return NULL;
}

static enum idem_status
add_beside_one_another(struct relay_world *world, struct idem_context *context,
                       unsigned run)
{
    struct helper one = {.world = world, .context = context, .step = "one"};
    struct helper two = {.world = world, .context = context, .step = "two"};

    pthread_create(&one.thread, NULL, add_on_a_thread, &one);
    pthread_create(&two.thread, NULL, add_on_a_thread, &two);
    pthread_join(one.thread, NULL);
    pthread_join(two.thread, NULL);
    if (one.status != IDEM_OK || two.status != IDEM_OK)
        return IDEM_INTERNAL;
    return run == 1 ? IDEM_UNAVAILABLE : IDEM_OK;
}

static void
threads_of_a_handler_name_their_parent_and_their_step(void **state)
{
    struct relay_world *world = *state;

    world->work = add_beside_one_another;
    assert_int_equal(call_keyed(world), IDEM_OK);
    assert_int_equal(relay_world_seen(world), 4);
    assert_int_equal(stage_effects(world->behind), 2);
}

struct told {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n;
};

static void
count_told(struct idem_call *call, const effects_add_reply *reply,
           const struct idem_outcome *outcome)
{
    struct told *told = idem_call_user(call);

    (void)reply;
    (void)outcome;
    pthread_mutex_lock(&told->lock);
    told->n++;
    pthread_cond_signal(&told->changed);
    pthread_mutex_unlock(&told->lock);
}

static enum idem_status
add_two_at_once(struct relay_world *world, struct idem_context *context,
                unsigned run)
{
    struct told told = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    const struct idem_call_options options = {.user = &told};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    (void)context;
    for (int i = 0; i < 2; i++) {
        request.amount = i;
        idem_call_release(effects_add_async(world->to_behind, &request,
                                            &options, count_told));
    }
    pthread_mutex_lock(&told.lock);
    while (told.n < 2)
        pthread_cond_wait(&told.changed, &told.lock);
    pthread_mutex_unlock(&told.lock);
    return run == 1 ? IDEM_UNAVAILABLE : IDEM_OK;
}

static void
calls_with_callbacks_are_children_too(void **state)
{
    struct relay_world *world = *state;

    world->work = add_two_at_once;
    assert_int_equal(call_keyed(world), IDEM_OK);
    assert_int_equal(relay_world_seen(world), 4);
    assert_int_equal(stage_effects(world->behind), 2);
}

/* --- Time --- */

static enum idem_status
add_with_long_deadlines(struct relay_world *world, struct idem_context *context,
                        unsigned run)
{
    const struct idem_call_options cut = {.timeout_ms = 3600000};
    const struct idem_call_options own = {.timeout_ms = 3600000,
                                          .own_deadline = true};

    (void)context;
    (void)run;
    if (relay_add(world, 1, &cut) != IDEM_OK ||
        relay_add(world, 2, &own) != IDEM_OK)
        return IDEM_INTERNAL;
    return IDEM_OK;
}

/* rpc 79, in a handler */
static void
a_child_has_no_more_time_than_its_parent_unless_it_says_so(void **state)
{
    struct relay_world *world = *state;

    world->work = add_with_long_deadlines;
    assert_int_equal(call_keyed(world), IDEM_OK);
    assert_true(world->seen[0].remaining_ms <= 30000);
    assert_true(world->seen[1].remaining_ms > 30000);
}

static int64_t option_ms; /* of the call that the handler makes */

static enum idem_status
add_with_a_timeout(struct relay_world *world, struct idem_context *context,
                   unsigned run)
{
    const struct idem_call_options options = {.timeout_ms = option_ms};

    (void)context;
    (void)run;
    return relay_add(world, 1, &options);
}

static void
open_to_behind(struct relay_world *world, const char *config)
{
    const struct idem_policy_options policy = {.config_json = config,
                                               .ignore_environment = true};
    const struct idem_channel_options options = {.policy = &policy};
    struct idem_error err;

    idem_channel_close(world->to_behind);
    if (idem_client_open(&world->to_behind,
                         idem_server_address(world->behind->servers[0], 0),
                         &options, &err) != IDEM_OK)
        fail_msg("%s", err.message);
}

static void
the_earliest_of_config_option_and_parent_is_the_deadline(void **state)
{
    static const struct {
        const char *config;
        int64_t option_ms, parent_ms, left_ms;
    } rows[] = {
        {"20s", 40000, 60000, 20000},
        {"60s", 20000, 40000, 20000},
        {"40s", 60000, 20000, 20000},
    };
    struct relay_world *world = *state;

    world->work = add_with_a_timeout;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct idem_call_options options = {.timeout_ms =
                                                      rows[i].parent_ms};
        char config[80];

        snprintf(config, sizeof config,
                 "{\"methodConfig\": [{\"name\": [{}], \"timeout\": \"%s\"}]}",
                 rows[i].config);
        open_to_behind(world, config);
        option_ms = rows[i].option_ms;
        assert_int_equal(relay_call(world, &options, NULL), IDEM_OK);
        assert_in_range(world->seen[i].remaining_ms, rows[i].left_ms - 5000,
                        rows[i].left_ms);
    }
}

/* --- Metadata and fence --- */

static enum idem_status
add_with_a_trace(struct relay_world *world, struct idem_context *context,
                 unsigned run)
{
    const struct idem_call_metadata mine = {"traceparent",
                                            idem_bytes_of("mine")};
    const struct idem_call_options own = {.metadata = &mine, .n_metadata = 1};
    const struct idem_call_options alone = {.no_parent = true};

    (void)run;
    assert_int_equal(idem_context_fence(context), 1);
    if (relay_add(world, 1, NULL) != IDEM_OK ||
        relay_add(world, 2, &own) != IDEM_OK ||
        relay_add(world, 3, &alone) != IDEM_OK)
        return IDEM_INTERNAL;
    return IDEM_OK;
}

static enum idem_status
call_with_trace(struct relay_world *world, const char *traceparent)
{
    const struct idem_call_metadata metadata[] = {
        {"traceparent", idem_bytes_of(traceparent)},
        {"tracestate", idem_bytes_of("vendor=1")},
        {"other", idem_bytes_of("secret")},
    };
    const struct idem_call_options options = {
        .key = "order-1", .metadata = metadata, .n_metadata = 3};

    return relay_call(world, &options, NULL);
}

static void
the_trace_and_the_fence_go_on_and_nothing_else(void **state)
{
    struct relay_world *world = *state;

    world->work = add_with_a_trace;
    assert_int_equal(call_with_trace(world, TRACE), IDEM_OK);
    assert_string_equal(world->seen[0].traceparent, TRACE);
    assert_string_equal(world->seen[0].tracestate, "vendor=1");
    assert_int_equal(world->seen[0].fence, 1);
    assert_string_equal(world->seen[1].traceparent, "mine");
    assert_string_equal(world->seen[1].tracestate, "");
    assert_string_equal(world->seen[2].traceparent, "");
    assert_int_equal(world->seen[2].fence, 0);
    for (int i = 0; i < 3; i++)
        assert_string_equal(world->seen[i].other, "");
    /* The fence came beside them, and is not for handlers' eyes. */
    assert_int_equal(world->seen[0].n_metadata, 2);
    assert_int_equal(world->seen[1].n_metadata, 1);
    assert_int_equal(world->seen[2].n_metadata, 0);
}

static void
a_trace_that_breaks_the_rules_ends_here(void **state)
{
    struct relay_world *world = *state;

    world->work = add_with_a_trace;
    assert_int_equal(call_with_trace(world, "00-nonsense"), IDEM_OK);
    assert_string_equal(world->seen[0].traceparent, "");
    assert_string_equal(world->seen[0].tracestate, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, relay_world_up, relay_world_down)
        TEST(a_handler_that_runs_again_repeats_the_keys_of_its_calls),
        TEST(calls_in_another_order_are_refused_and_not_done_twice),
        TEST(calls_with_names_may_change_their_order),
        TEST(one_key_of_two_methods_makes_two_children),
        TEST(a_key_of_the_callers_or_of_fields_wins_and_one_can_go_without),
        TEST(a_parent_without_a_key_gives_none),
        TEST(threads_of_a_handler_name_their_parent_and_their_step),
        TEST(calls_with_callbacks_are_children_too),
        TEST(a_child_has_no_more_time_than_its_parent_unless_it_says_so),
        TEST(the_earliest_of_config_option_and_parent_is_the_deadline),
        TEST(the_trace_and_the_fence_go_on_and_nothing_else),
        TEST(a_trace_that_breaks_the_rules_ends_here),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
