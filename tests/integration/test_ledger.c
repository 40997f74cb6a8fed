/* idem.v1.Ledger through a real server: what became of a key, and that it never
 * runs; on each authority. */
#include "ledger_world.h"

#include <idem/digest.h>
#include <idem/key.h>
#include <idem/postgres.h>
#include <idem/reason.h>

#include <stdio.h>

#include "idem/v1/ledger.idem.h"

static void
mint(char *key)
{
    idem_key_mint(key, idem_clock_system(), 3600000);
}

static void
assert_refused(struct ledger_world *world, ask_fn *ask,
               const struct idem_method *method, const char *key,
               enum idem_status status, const char *reason)
{
    struct idem_resolution resolution;
    struct idem_error err;

    assert_int_equal(ask(world->channel, method, key, 0, &resolution, &err),
                     status);
    assert_string_equal(err.reason, reason);
}

static void
a_key_that_nobody_used_is_absent_and_may_run(void **state)
{
    char key[IDEM_KEY_MAX + 1];
    struct idem_outcome outcome;

    mint(key);
    assert_int_equal(
        ledger_state(*state, idem_resolve, &effects_add_method, key),
        IDEM_RESOLVED_ABSENT);
    assert_int_equal(ledger_add(*state, key, &outcome), IDEM_OK);
    assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
}

static void
assert_done(struct ledger_world *world, ask_fn *ask, const char *key,
            int64_t number)
{
    struct idem_resolution resolution;
    effects_add_reply *reply;
    struct idem_error err;

    must(ask(world->channel, &effects_add_method, key, 0, &resolution, &err),
         &err);
    assert_int_equal(resolution.state, IDEM_RESOLVED_DONE);
    assert_int_equal(resolution.status, IDEM_OK);
    assert_true(resolution.first_at_ms > 0);
    must(effects_add_read_reply(resolution.reply, &reply, &err), &err);
    assert_int_equal(reply->number, number);
    assert_int_equal(reply->amount, 7);
    effects_add_reply_free(reply);
    idem_resolution_fini(&resolution);
}

/* Fault 75. */
static void
a_key_that_is_done_gives_its_answer_to_resolve_and_abandon(void **state)
{
    struct ledger_world *world = *state;
    const struct idem_call_options options = {0};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    effects_add_reply *reply;
    struct idem_outcome outcome;
    int64_t number;

    request.amount = 7;
    assert_int_equal(
        effects_add(world->channel, &request, &reply, &options, &outcome),
        IDEM_OK);
    number = reply->number;
    effects_add_reply_free(reply);
    assert_done(world, idem_resolve, outcome.key, number);
    assert_done(world, idem_abandon, outcome.key, number);
    assert_int_equal(ledger_add(world, outcome.key, &outcome), IDEM_OK);
    assert_int_equal(outcome.effect, IDEM_EFFECT_REPLAYED);
}

static void
a_recorded_error_is_done_with_its_words(void **state)
{
    struct ledger_world *world = *state;
    const struct idem_call_options options = {.key = "no-17"};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct idem_resolution resolution;
    struct idem_outcome outcome;
    struct idem_error err;

    request.amount = 3;
    request.fail_with = IDEM_FAILED_PRECONDITION;
    (void)effects_add(world->channel, &request, NULL, &options, &outcome);
    must(idem_resolve(world->channel, &effects_add_method, "no-17", 0,
                      &resolution, &err),
         &err);
    assert_int_equal(resolution.state, IDEM_RESOLVED_DONE);
    assert_int_equal(resolution.status, IDEM_FAILED_PRECONDITION);
    assert_string_equal(resolution.message, outcome.message);
    assert_int_equal(resolution.reply.size, 0);
    idem_resolution_fini(&resolution);
}

/* Fault 73, D8: both late attempts, and whatever follows. */
static void
an_abandoned_key_never_runs(void **state)
{
    struct ledger_world *world = *state;
    char key[IDEM_KEY_MAX + 1];
    struct idem_outcome outcome;

    mint(key);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            ledger_state(world, idem_abandon, &effects_add_method, key),
            IDEM_RESOLVED_ABANDONED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ledger_add(world, key, &outcome),
                         IDEM_FAILED_PRECONDITION);
        assert_string_equal(outcome.reason, IDEM_KEY_ABANDONED);
        assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
        assert_true(outcome.final);
    }
    assert_int_equal(
        ledger_state(world, idem_resolve, &effects_add_method, key),
        IDEM_RESOLVED_ABANDONED);
    assert_int_equal(effects_runs(&world->effects), 0);
}

struct begun {
    struct ledger_world *world;
    const char *key;
    struct idem_outcome outcome;
};

static void *
run(void *with)
{
    struct begun *begun = with;

    (void)ledger_add(begun->world, begun->key, &begun->outcome);
    return NULL;
}

static void
a_key_that_runs_can_neither_be_resolved_nor_abandoned(void **state)
{
    struct ledger_world *world = *state;
    char key[IDEM_KEY_MAX + 1];
    struct begun begun = {.world = world, .key = key};
    pthread_t thread;

    mint(key);
    effects_hold(&world->effects);
    pthread_create(&thread, NULL, run, &begun);
    effects_await(&world->effects, 1);
    assert_int_equal(
        ledger_state(world, idem_resolve, &effects_add_method, key),
        IDEM_RESOLVED_RUNNING);
    assert_int_equal(
        ledger_state(world, idem_abandon, &effects_add_method, key),
        IDEM_RESOLVED_RUNNING);
    effects_open(&world->effects);
    pthread_join(thread, NULL);
    assert_int_equal(begun.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(
        ledger_state(world, idem_abandon, &effects_add_method, key),
        IDEM_RESOLVED_DONE);
}

/* The lease says how long it can last. */
static void
a_leased_key_that_runs_tells_its_lease(void **state)
{
    struct ledger_world *world = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    const struct idem_call_options options = {.key = "leased-1"};
    struct idem_resolution resolution;
    struct idem_error err;
    struct idem_call *call;

    effects_hold(&world->effects);
    call = effects_push_async(world->channel, &request, &options, NULL);
    effects_await(&world->effects, 1);
    must(idem_resolve(world->channel, &effects_push_method, "leased-1", 0,
                      &resolution, &err),
         &err);
    assert_int_equal(resolution.state, IDEM_RESOLVED_RUNNING);
    assert_in_range(resolution.lease_ms, 1, 900);
    effects_open(&world->effects);
    idem_call_release(call);
}

/* Fault 62, I6: the tenant is who was let in, and nothing that a request says.
 */
static void
a_tenant_sees_and_stops_only_its_own_keys(void **state)
{
    struct ledger_world *world = *state;
    struct idem_outcome outcome;

    assert_int_equal(ledger_add(world, "shared", &outcome), IDEM_OK);
    world->gatekeeper->tenant = "bert";
    assert_int_equal(
        ledger_state(world, idem_resolve, &effects_add_method, "shared"),
        IDEM_RESOLVED_ABSENT);
    assert_int_equal(
        ledger_state(world, idem_abandon, &effects_add_method, "shared"),
        IDEM_RESOLVED_ABANDONED);
    world->gatekeeper->tenant = "anna";
    assert_int_equal(
        ledger_state(world, idem_resolve, &effects_add_method, "shared"),
        IDEM_RESOLVED_DONE);
}

/* Fault 62: another method, another record. */
static void
a_key_belongs_to_its_method(void **state)
{
    struct idem_outcome outcome;

    assert_int_equal(ledger_add(*state, "of-add", &outcome), IDEM_OK);
    assert_int_equal(
        ledger_state(*state, idem_resolve, &effects_push_method, "of-add"),
        IDEM_RESOLVED_ABSENT);
}

static void
what_cannot_be_asked_is_refused_with_its_reason(void **state)
{
    const struct idem_method unknown = {.name = "effects.v1.Effects/Melt"};
    ask_fn *const asks[] = {idem_resolve, idem_abandon};

    for (int i = 0; i < 2; i++) {
        assert_refused(*state, asks[i], &unknown, "k", IDEM_NOT_FOUND, "");
        assert_refused(*state, asks[i], &effects_count_method, "k",
                       IDEM_INVALID_ARGUMENT, "");
        assert_refused(*state, asks[i], &effects_add_method, "",
                       IDEM_INVALID_ARGUMENT, IDEM_KEY_EMPTY);
        assert_refused(*state, asks[i], &effects_add_method, "a b",
                       IDEM_INVALID_ARGUMENT, IDEM_KEY_CHARSET);
        assert_refused(*state, asks[i], &effects_add_method, "idk_1",
                       IDEM_INVALID_ARGUMENT, IDEM_KEY_FORMAT);
        assert_refused(*state, asks[i], &effects_add_secret_method, "order-17",
                       IDEM_INVALID_ARGUMENT, IDEM_KEY_WEAK);
    }
}

/* Minted a year ago: its day is not there. */
static void
a_key_of_a_forgotten_day_is_expired(void **state)
{
    static const char key[] = "idk_01890000000070008000000000000000_86400_";
    char text[sizeof key + 8];

    snprintf(text, sizeof text, "%s%08x", key, idem_crc32c(idem_bytes_of(key)));
    assert_int_equal(
        ledger_state(*state, idem_resolve, &effects_add_method, text),
        IDEM_RESOLVED_EXPIRED);
    assert_int_equal(
        ledger_state(*state, idem_abandon, &effects_add_method, text),
        IDEM_RESOLVED_EXPIRED);
}

/* Fault 42 for the ledger: nothing is claimed that is not known. */
static void
a_store_that_is_away_is_unavailable_and_says_nothing(void **state)
{
    struct ledger_world *world = *state;
    struct idem_resolution resolution;
    struct idem_error err;

    if (!ledger_postgres)
        skip();
    postgres_stop(ledger_postgres);
    assert_int_equal(idem_resolve(world->channel, &effects_add_method, "k", 500,
                                  &resolution, &err),
                     IDEM_DEADLINE_EXCEEDED);
    assert_string_equal(err.reason, IDEM_STORE_AWAY);
    postgres_restart(ledger_postgres);
}

/* A server of another house, that knows states which we do not. */
static enum idem_status
answer_nonsense(struct idem_context *context,
                const idem_ledger_resolve_request *request,
                idem_ledger_resolution *reply)
{
    (void)context;
    reply->state =
        request->key[0] == 'd' ? IDEM__V1__RESOLUTION__STATE__DONE : 99;
    return IDEM_OK;
}

static void
a_ledger_that_makes_no_sense_is_not_believed(void **state)
{
    const struct idem_ledger_handlers handlers = {.resolve = answer_nonsense};
    struct idem_resolution resolution;
    struct idem_server *server;
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    must(idem_server_new(&server, NULL, &err), &err);
    must(idem_ledger_register(server, &handlers, NULL, &err), &err);
    must(idem_server_listen(server, "inproc://nonsense", &err), &err);
    must(idem_server_start(server, &err), &err);
    must(idem_client_open(&channel, "inproc://nonsense", NULL, &err), &err);
    assert_int_equal(
        idem_resolve(channel, &effects_add_method, "99", 0, &resolution, &err),
        IDEM_INTERNAL);
    assert_int_equal(idem_resolve(channel, &effects_add_method, "done", 0,
                                  &resolution, &err),
                     IDEM_INTERNAL); /* without an answer */
    idem_channel_close(channel);
    idem_server_free(server);
}

static void
a_server_without_an_authority_has_no_ledger(void **state)
{
    struct idem_resolution resolution;
    struct idem_server *server;
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    must(idem_server_open(&server, NULL, NULL, NULL, &err), &err);
    must(idem_server_listen(server, "inproc://no-ledger", &err), &err);
    must(idem_server_start(server, &err), &err);
    must(idem_client_open(&channel, "inproc://no-ledger", NULL, &err), &err);
    assert_int_equal(
        idem_resolve(channel, &effects_add_method, "k", 0, &resolution, &err),
        IDEM_UNIMPLEMENTED);
    idem_channel_close(channel);
    idem_server_free(server);
}

#define HERE(test)                                                             \
    cmocka_unit_test_setup_teardown(test, ledger_world_up, ledger_world_down)

static int
run_on(const char *name)
{
    const struct CMUnitTest tests[] = {
        HERE(a_key_that_nobody_used_is_absent_and_may_run),
        HERE(a_key_that_is_done_gives_its_answer_to_resolve_and_abandon),
        HERE(a_recorded_error_is_done_with_its_words),
        HERE(an_abandoned_key_never_runs),
        HERE(a_key_that_runs_can_neither_be_resolved_nor_abandoned),
        HERE(a_leased_key_that_runs_tells_its_lease),
        HERE(a_tenant_sees_and_stops_only_its_own_keys),
        HERE(a_key_belongs_to_its_method),
        HERE(what_cannot_be_asked_is_refused_with_its_reason),
        HERE(a_key_of_a_forgotten_day_is_expired),
        HERE(a_store_that_is_away_is_unavailable_and_says_nothing),
        HERE(a_ledger_that_makes_no_sense_is_not_believed),
        HERE(a_server_without_an_authority_has_no_ledger),
    };

    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(void)
{
    struct idem_error err;
    int failed = run_on("sqlite");

    ledger_postgres = postgres_start(NULL);
    must(idem_postgres_migrate(postgres_conninfo(ledger_postgres), NULL, &err),
         &err);
    postgres_strict(ledger_postgres);
    postgres_sql(ledger_postgres, EFFECTS_SCHEMA);
    failed += run_on("postgres");
    postgres_free(ledger_postgres);
    return failed;
}
