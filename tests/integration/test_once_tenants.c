/* Fault 62, B020, I6: whose key it is comes from who was let in, here by a
 * password in the call's metadata. The same text from two of them is two keys,
 * and no answer crosses: from memory, Redis, the authority or the ledger. */
#include "once_stage.h"

#include "child.h"
#include "redis.h"

#include <idem/call.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idem/v1/ledger.idem.h"

/* Lets in whoever says "pass" and a name, as one who checks tokens would. */
static enum idem_step
let_in(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    if (idem_metadata_get(&call->metadata, "pass", &call->tenant))
        return IDEM_NEXT;
    idem_call_fail(call, IDEM_UNAUTHENTICATED, IDEM_EFFECT_REFUSED, NULL,
                   "no pass");
    return IDEM_ANSWER;
}

static void
dismiss(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops doorman_ops = {
    .name = "doorman",
    .band = IDEM_BAND_AUTH,
    .request = let_in,
    .free = dismiss,
};

static struct idem_interceptor *
doorman_new(void)
{
    struct idem_interceptor *doorman = calloc(1, sizeof(*doorman));

    assert_non_null(doorman);
    doorman->ops = &doorman_ops;
    return doorman;
}

/* Who calls, and under which key. */
struct caller {
    const char *tenant;
    char key[32];
};

#define CALLERS 4

/* The same text from two, and two that would be one text if it were put
 * together with a colon (D7). run: keys of its own for each test. */
static struct caller
caller_of(unsigned i, const char *run)
{
    static const char *const tenants[CALLERS] = {"anna", "bert", "a", "a:b"};
    static const char *const keys[CALLERS] = {"k", "k", "b:c", "c"};
    struct caller caller = {.tenant = tenants[i]};

    snprintf(caller.key, sizeof(caller.key), "%s-%s", keys[i], run);
    return caller;
}

/* All of them send the same bytes. */
static struct called
call_as(struct stage *stage, stage_call_fn *call, struct caller caller)
{
    const struct idem_call_metadata pass = {"pass",
                                            idem_bytes_of(caller.tenant)};
    const struct idem_call_options options = {
        .key = caller.key, .metadata = &pass, .n_metadata = 1};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct called called = {.status = IDEM_OK};
    effects_add_reply *reply = NULL;

    request.amount = 7;
    called.status =
        call(stage->channels[0], &request, &reply, &options, &called.outcome);
    if (reply) {
        called.number = reply->number;
        called.amount = reply->amount;
        effects_add_reply_free(reply);
    }
    return called;
}

static void
call_first(struct stage *stage, stage_call_fn *call, const char *run,
           struct called first[CALLERS])
{
    for (unsigned i = 0; i < CALLERS; i++) {
        first[i] = call_as(stage, call, caller_of(i, run));
        assert_int_equal(first[i].status, IDEM_OK);
        assert_int_equal(first[i].outcome.effect, IDEM_EFFECT_COMMITTED);
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(first[i].number, first[j].number);
    }
}

static void
call_again(struct stage *stage, stage_call_fn *call, const char *run,
           const struct called first[CALLERS])
{
    for (unsigned i = 0; i < CALLERS; i++) {
        struct called again = call_as(stage, call, caller_of(i, run));

        assert_replay_of(&again, &first[i]);
    }
}

/* On one method and then, under the same keys, on another one. */
static void
each_tenant_and_method_has_effect_and_answer_of_its_own(void **state)
{
    struct stage *stage = *state;
    stage_call_fn *const calls[] = {effects_add, effects_add_loose,
                                    effects_push};
    struct called first[3][CALLERS];

    stage_rebuild(stage, doorman_new(), NULL);
    for (int i = 0; i < 3; i++)
        call_first(stage, calls[i], "1", first[i]);
    for (int i = 0; i < 3; i++)
        call_again(stage, calls[i], "1", first[i]);
    assert_int_equal(effects_runs(&stage->effects), 3 * CALLERS);
}

static bool
redis_has_all(void *with)
{
    char reply[64], all[64];

    (void)with;
    snprintf(all, sizeof(all), ":%d\r\n", CALLERS);
    redis_say(stage_redis(), "DBSIZE", reply, sizeof(reply));
    return strcmp(reply, all) == 0;
}

/* By a server that has not seen the calls, so that it must ask Redis, which it
 * does once it has heard of the authority. */
static void
redis_gives_each_tenant_its_own_answer(void **state)
{
    struct stage *stage = *state;
    struct called first[CALLERS];
    char reply[64];

    stage_rebuild(stage, doorman_new(), NULL);
    redis_say(stage_redis(), "FLUSHALL", reply, sizeof(reply));
    call_first(stage, effects_add_always, "2", first);
    assert_true(child_wait_until(redis_has_all, NULL, 10000));
    stage_rebuild(stage, doorman_new(), NULL);
    assert_int_equal(
        call_as(stage, effects_add, caller_of(0, "2-heard")).status, IDEM_OK);
    call_again(stage, effects_add_always, "2", first);
    assert_int_equal(stage_counts(stage, 0).shielded, CALLERS);
}

struct held {
    struct stage *stage;
    struct caller caller;
    struct called called;
};

static void *
call_held(void *with)
{
    struct held *held = with;

    held->called = call_as(held->stage, effects_push, held->caller);
    return NULL;
}

/* In memory: who has another tenant's key does not wait beside its call. */
static void
calls_of_two_tenants_run_side_by_side(void **state)
{
    struct stage *stage = *state;
    struct held held[CALLERS];
    pthread_t threads[CALLERS];

    stage_rebuild(stage, doorman_new(), NULL);
    effects_hold(&stage->effects);
    for (unsigned i = 0; i < CALLERS; i++) {
        held[i] = (struct held){.stage = stage, .caller = caller_of(i, "3")};
        pthread_create(&threads[i], NULL, call_held, &held[i]);
    }
    effects_await(&stage->effects, CALLERS);
    effects_open(&stage->effects);
    for (unsigned i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(held[i].called.outcome.effect, IDEM_EFFECT_COMMITTED);
    }
    assert_int_equal(stage_counts(stage, 0).attached, 0);
}

/* What the ledger says of the caller's key on effects.v1.Effects/Add. */
static idem_ledger_resolution_state
resolve_as(struct stage *stage, struct caller caller, int64_t *number)
{
    const struct idem_call_metadata pass = {"pass",
                                            idem_bytes_of(caller.tenant)};
    const struct idem_call_options options = {.metadata = &pass,
                                              .n_metadata = 1};
    idem_ledger_resolve_request request = IDEM_LEDGER_RESOLVE_REQUEST_INIT;
    idem_ledger_resolution_state state;
    idem_ledger_resolution *resolution;
    effects_add_reply *reply;
    struct idem_error err;

    request.method = effects_add_method.name;
    request.key = caller.key;
    assert_int_equal(idem_ledger_resolve(stage->channels[0], &request,
                                         &resolution, &options, NULL),
                     IDEM_OK);
    state = resolution->state;
    if (resolution->answer) {
        struct idem_bytes bytes = {resolution->answer->reply.data,
                                   resolution->answer->reply.len};

        assert_int_equal(effects_add_read_reply(bytes, &reply, &err), IDEM_OK);
        *number = reply->number;
        effects_add_reply_free(reply);
    }
    idem_ledger_resolution_free(resolution);
    return state;
}

static void
the_ledger_tells_each_tenant_of_its_own_keys(void **state)
{
    struct stage *stage = *state;
    struct called first[CALLERS];
    const struct caller strangers[] = {
        {"carl", "k-4"}, {"anna", "b:c-4"}, {"a", "c-4"}, {"a:b", "b:c-4"}};

    stage_rebuild(stage, doorman_new(), NULL);
    call_first(stage, effects_add, "4", first);
    for (unsigned i = 0; i < CALLERS; i++) {
        int64_t number = 0;

        assert_int_equal(resolve_as(stage, caller_of(i, "4"), &number),
                         IDEM_LEDGER_RESOLUTION_STATE_DONE);
        assert_int_equal(number, first[i].number);
        assert_int_equal(resolve_as(stage, strangers[i], &number),
                         IDEM_LEDGER_RESOLUTION_STATE_ABSENT);
    }
}

int
main(void)
{
#define TEST(name)                                                             \
    STAGE_TEST(stage_sqlite_tcp, name), STAGE_TEST(stage_both, name)
    const struct CMUnitTest tests[] = {
        TEST(each_tenant_and_method_has_effect_and_answer_of_its_own),
        STAGE_TEST(stage_both, redis_gives_each_tenant_its_own_answer),
        TEST(calls_of_two_tenants_run_side_by_side),
        TEST(the_ledger_tells_each_tenant_of_its_own_keys),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
