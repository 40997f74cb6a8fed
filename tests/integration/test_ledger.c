/* idem.v1.Ledger through a real server: what became of a key, and that it never
 * runs; on each authority. */
#include "support.h"

#include "effects.h"
#include "postgres.h"
#include "tempdir.h"

#include <idem/call.h>
#include <idem/digest.h>
#include <idem/key.h>
#include <idem/postgres.h>
#include <idem/reason.h>
#include <idem/resolve.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct postgres *postgres; /* of the group; NULL: sqlite */

struct world {
    struct tempdir dir;
    char books[128], push_log[128];
    struct effects effects;
    struct idem_server *server;
    struct idem_channel *channel;
    struct gatekeeper *gatekeeper;
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

/* --- Building --- */

/* Says who calls, as an interceptor that checks tokens would. */
struct gatekeeper {
    struct idem_interceptor base;
    const char *tenant;
};

static enum idem_step
let_in(struct idem_interceptor *self, struct idem_call *call)
{
    call->tenant = idem_bytes_of(((struct gatekeeper *)self)->tenant);
    return IDEM_NEXT;
}

static void
dismiss(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops gatekeeper_ops = {
    .name = "gatekeeper",
    .band = IDEM_BAND_AUTH,
    .request = let_in,
    .free = dismiss,
};

static struct gatekeeper *
gatekeeper_new(void)
{
    struct gatekeeper *gatekeeper = calloc(1, sizeof *gatekeeper);

    assert_non_null(gatekeeper);
    gatekeeper->base.ops = &gatekeeper_ops;
    gatekeeper->tenant = "anna";
    return gatekeeper;
}

static struct idem_store *
open_store(const struct world *world)
{
    const struct idem_sqlite_options sqlite = {.path = world->books,
                                               .schema = EFFECTS_SCHEMA};
    struct idem_postgres_options options = {0};
    struct idem_store *store;
    struct idem_error err;

    if (postgres) {
        options.conninfo = postgres_conninfo(postgres);
        must(idem_postgres_open(&store, &options, &err), &err);
    } else {
        must(idem_sqlite_open(&store, &sqlite, &err), &err);
    }
    return store;
}

static void
start(struct world *world, struct idem_store *store)
{
    struct idem_error err;

    must(idem_server_open(&world->server, store, NULL, NULL, &err), &err);
    world->gatekeeper = gatekeeper_new();
    must(idem_server_add(world->server, &world->gatekeeper->base, &err), &err);
    must(effects_register(world->server, &effects_handlers, &world->effects,
                          &err),
         &err);
    must(idem_server_listen(world->server, "inproc://ledger", &err), &err);
    must(idem_server_start(world->server, &err), &err);
    must(idem_client_open(&world->channel, "inproc://ledger", NULL, &err),
         &err);
}

static int
set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    tempdir_open(&world->dir);
    tempdir_file(&world->dir, "books", world->books, sizeof world->books);
    tempdir_file(&world->dir, "pushes", world->push_log,
                 sizeof world->push_log);
    effects_init(&world->effects, world->push_log);
    start(world, open_store(world));
    *state = world;
    return 0;
}

static int
tear_down(void **state)
{
    struct world *world = *state;

    idem_channel_close(world->channel);
    idem_server_free(world->server);
    effects_fini(&world->effects);
    tempdir_close(&world->dir);
    free(world);
    return 0;
}

/* --- Asking --- */

static enum idem_status
add(struct world *world, const char *key, struct idem_outcome *outcome)
{
    const struct idem_call_options options = {.key = key};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = 7;
    return effects_add(world->channel, &request, NULL, &options, outcome);
}

static void
mint(char *key)
{
    idem_key_mint(key, idem_clock_system(), 3600000);
}

typedef enum idem_status ask_fn(struct idem_channel *channel,
                                const struct idem_method *method,
                                const char *key, int64_t timeout_ms,
                                struct idem_resolution *resolution,
                                struct idem_error *err);

/* The state; the rest of the resolution is not looked at. */
static enum idem_resolved
state_of(struct world *world, ask_fn *ask, const struct idem_method *method,
         const char *key)
{
    struct idem_resolution resolution;
    enum idem_resolved state;
    struct idem_error err;

    must(ask(world->channel, method, key, 0, &resolution, &err), &err);
    state = resolution.state;
    idem_resolution_fini(&resolution);
    return state;
}

static void
assert_refused(struct world *world, ask_fn *ask,
               const struct idem_method *method, const char *key,
               enum idem_status status, const char *reason)
{
    struct idem_resolution resolution;
    struct idem_error err;

    assert_int_equal(ask(world->channel, method, key, 0, &resolution, &err),
                     status);
    assert_string_equal(err.reason, reason);
}

/* --- Tests --- */

static void
a_key_that_nobody_used_is_absent_and_may_run(void **state)
{
    char key[IDEM_KEY_MAX + 1];
    struct idem_outcome outcome;

    mint(key);
    assert_int_equal(state_of(*state, idem_resolve, &effects_add_method, key),
                     IDEM_RESOLVED_ABSENT);
    assert_int_equal(add(*state, key, &outcome), IDEM_OK);
    assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
}

static void
assert_done(struct world *world, ask_fn *ask, const char *key, int64_t number)
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
    struct world *world = *state;
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
    assert_int_equal(add(world, outcome.key, &outcome), IDEM_OK);
    assert_int_equal(outcome.effect, IDEM_EFFECT_REPLAYED);
}

static void
a_recorded_error_is_done_with_its_words(void **state)
{
    struct world *world = *state;
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
    struct world *world = *state;
    char key[IDEM_KEY_MAX + 1];
    struct idem_outcome outcome;

    mint(key);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            state_of(world, idem_abandon, &effects_add_method, key),
            IDEM_RESOLVED_ABANDONED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(add(world, key, &outcome), IDEM_FAILED_PRECONDITION);
        assert_string_equal(outcome.reason, IDEM_KEY_ABANDONED);
        assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
        assert_true(outcome.final);
    }
    assert_int_equal(state_of(world, idem_resolve, &effects_add_method, key),
                     IDEM_RESOLVED_ABANDONED);
    assert_int_equal(effects_runs(&world->effects), 0);
}

struct begun {
    struct world *world;
    const char *key;
    struct idem_outcome outcome;
};

static void *
run(void *with)
{
    struct begun *begun = with;

    (void)add(begun->world, begun->key, &begun->outcome);
    return NULL;
}

static void
a_key_that_runs_can_neither_be_resolved_nor_abandoned(void **state)
{
    struct world *world = *state;
    char key[IDEM_KEY_MAX + 1];
    struct begun begun = {.world = world, .key = key};
    pthread_t thread;

    mint(key);
    effects_hold(&world->effects);
    pthread_create(&thread, NULL, run, &begun);
    effects_await(&world->effects, 1);
    assert_int_equal(state_of(world, idem_resolve, &effects_add_method, key),
                     IDEM_RESOLVED_RUNNING);
    assert_int_equal(state_of(world, idem_abandon, &effects_add_method, key),
                     IDEM_RESOLVED_RUNNING);
    effects_open(&world->effects);
    pthread_join(thread, NULL);
    assert_int_equal(begun.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(state_of(world, idem_abandon, &effects_add_method, key),
                     IDEM_RESOLVED_DONE);
}

/* The lease says how long it can last. */
static void
a_leased_key_that_runs_tells_its_lease(void **state)
{
    struct world *world = *state;
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
    struct world *world = *state;
    struct idem_outcome outcome;

    assert_int_equal(add(world, "shared", &outcome), IDEM_OK);
    world->gatekeeper->tenant = "bert";
    assert_int_equal(
        state_of(world, idem_resolve, &effects_add_method, "shared"),
        IDEM_RESOLVED_ABSENT);
    assert_int_equal(
        state_of(world, idem_abandon, &effects_add_method, "shared"),
        IDEM_RESOLVED_ABANDONED);
    world->gatekeeper->tenant = "anna";
    assert_int_equal(
        state_of(world, idem_resolve, &effects_add_method, "shared"),
        IDEM_RESOLVED_DONE);
}

/* Fault 62: another method, another record. */
static void
a_key_belongs_to_its_method(void **state)
{
    struct idem_outcome outcome;

    assert_int_equal(add(*state, "of-add", &outcome), IDEM_OK);
    assert_int_equal(
        state_of(*state, idem_resolve, &effects_push_method, "of-add"),
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
    }
}

/* Minted a year ago: its day is not there. */
static void
a_key_of_a_forgotten_day_is_expired(void **state)
{
    static const char key[] = "idk_01890000000070008000000000000000_86400_";
    char text[sizeof key + 8];

    snprintf(text, sizeof text, "%s%08x", key, idem_crc32c(idem_bytes_of(key)));
    assert_int_equal(state_of(*state, idem_resolve, &effects_add_method, text),
                     IDEM_RESOLVED_EXPIRED);
    assert_int_equal(state_of(*state, idem_abandon, &effects_add_method, text),
                     IDEM_RESOLVED_EXPIRED);
}

/* Fault 42 for the ledger: nothing is claimed that is not known. */
static void
a_store_that_is_away_is_unavailable_and_says_nothing(void **state)
{
    struct world *world = *state;
    struct idem_resolution resolution;
    struct idem_error err;

    if (!postgres)
        skip();
    postgres_stop(postgres);
    assert_int_equal(idem_resolve(world->channel, &effects_add_method, "k", 500,
                                  &resolution, &err),
                     IDEM_UNAVAILABLE);
    assert_string_equal(err.reason, IDEM_STORE_AWAY);
    postgres_restart(postgres);
}

static void
a_server_without_an_authority_has_no_ledger(void **state)
{
    struct world *world = *state;
    struct idem_resolution resolution;
    struct idem_server *server;
    struct idem_channel *channel;
    struct idem_error err;

    (void)world;
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

#define HERE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

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
        HERE(a_server_without_an_authority_has_no_ledger),
    };

    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(void)
{
    struct idem_error err;
    int failed = run_on("sqlite");

    postgres = postgres_start(NULL);
    must(idem_postgres_migrate(postgres_conninfo(postgres), NULL, &err), &err);
    postgres_sql(postgres, EFFECTS_SCHEMA);
    failed += run_on("postgres");
    postgres_free(postgres);
    return failed;
}
