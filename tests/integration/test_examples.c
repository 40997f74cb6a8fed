/* The interceptors that docs/interceptors.md shows, on both sides. */
#include "support.h"

#include "audit.h"
#include "effects.h"
#include "tempdir.h"
#include "tenant.h"

#include <idem/sqlite.h>
#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
    struct tempdir dir;
    struct effects effects;
    struct idem_server *server;
    FILE *server_log, *client_log;
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

static void
open_server(struct world *world)
{
    char path[128];
    const struct idem_sqlite_options books = {
        .path = tempdir_file(&world->dir, "books", path, sizeof path),
        .schema = EFFECTS_SCHEMA,
    };
    struct idem_store *store;
    struct idem_error err;

    must(idem_sqlite_open(&store, &books, &err), &err);
    must(idem_server_open(&world->server, store, NULL, NULL, &err), &err);
    must(idem_server_add(world->server, audit_new(world->server_log), &err),
         &err);
    must(idem_server_add(world->server, tenant_from_header_new(), &err), &err);
    must(effects_register(world->server, &effects_handlers, &world->effects,
                          &err),
         &err);
    must(idem_server_listen(world->server, "tcp://127.0.0.1:0", &err), &err);
    must(idem_server_start(world->server, &err), &err);
}

static int
set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    tempdir_open(&world->dir);
    effects_init(&world->effects, NULL);
    world->server_log = tmpfile();
    world->client_log = tmpfile();
    assert_non_null(world->server_log);
    assert_non_null(world->client_log);
    open_server(world);
    *state = world;
    return 0;
}

static int
tear_down(void **state)
{
    struct world *world = *state;

    idem_server_free(world->server);
    fclose(world->client_log);
    fclose(world->server_log);
    effects_fini(&world->effects);
    tempdir_close(&world->dir);
    free(world);
    return 0;
}

/* NULL: says no tenant. */
static struct idem_channel *
open_channel(struct world *world, const char *tenant)
{
    struct idem_channel *channel;
    struct idem_error err;

    must(idem_client_open(&channel, idem_server_address(world->server, 0), NULL,
                          &err),
         &err);
    must(idem_channel_add(channel, audit_new(world->client_log), &err), &err);
    if (tenant)
        must(idem_channel_add(channel, tenant_header_new(tenant), &err), &err);
    return channel;
}

static struct idem_outcome
add(struct idem_channel *channel, const char *key)
{
    const struct idem_call_options options = {.key = key};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct idem_outcome outcome;

    request.amount = 1;
    effects_add(channel, &request, NULL, &options, &outcome);
    return outcome;
}

static void
assert_next_line(FILE *log, const char *begin)
{
    char line[512];

    assert_non_null(fgets(line, sizeof line, log));
    if (strncmp(line, begin, strlen(begin)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", line, begin);
    assert_non_null(strstr(line, "us\n"));
}

static void
a_tenant_is_told_by_one_side_and_taken_by_the_other(void **state)
{
    struct world *world = *state;
    struct idem_channel *acme = open_channel(world, "acme");
    struct idem_channel *other = open_channel(world, "other");

    assert_int_equal(add(acme, "key").effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(add(acme, "key").effect, IDEM_EFFECT_REPLAYED);
    assert_int_equal(add(other, "key").effect, IDEM_EFFECT_COMMITTED);
    idem_channel_close(other);
    idem_channel_close(acme);
}

static void
a_call_without_a_tenant_is_turned_away_before_its_key(void **state)
{
    struct world *world = *state;
    struct idem_channel *nobody = open_channel(world, NULL);
    struct idem_outcome outcome = add(nobody, "key");

    assert_int_equal(outcome.status, IDEM_UNAUTHENTICATED);
    assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
    assert_string_equal(outcome.reason, "NO_TENANT");
    assert_int_equal(effects_runs(&world->effects), 0);
    idem_channel_close(nobody);
}

/* rpc 94: what an interceptor further in turns away is seen by the outer one.
 */
static void
each_call_has_a_line_on_each_side(void **state)
{
    struct world *world = *state;
    struct idem_channel *acme = open_channel(world, "acme");
    struct idem_channel *nobody = open_channel(world, NULL);

    (void)add(acme, "key");
    (void)add(acme, "key");
    (void)add(nobody, "key");
    idem_channel_close(nobody);
    idem_channel_close(acme);
    idem_server_stop(world->server);
    rewind(world->client_log);
    rewind(world->server_log);
    assert_next_line(world->client_log,
                     "effects.v1.Effects/Add - OK COMMITTED 1 ");
    assert_next_line(world->client_log,
                     "effects.v1.Effects/Add - OK REPLAYED 1 ");
    assert_next_line(world->client_log,
                     "effects.v1.Effects/Add - UNAUTHENTICATED REFUSED 1 ");
    assert_next_line(world->server_log,
                     "effects.v1.Effects/Add acme OK COMMITTED 1 ");
    assert_next_line(world->server_log,
                     "effects.v1.Effects/Add acme OK REPLAYED 1 ");
    assert_next_line(world->server_log,
                     "effects.v1.Effects/Add - UNAUTHENTICATED REFUSED 1 ");
}

static void
the_chain_says_where_they_stand(void **state)
{
    struct world *world = *state;
    struct idem_channel *acme = open_channel(world, "acme");

    assert_string_equal(idem_channel_chain(acme),
                        "audit > tenant-header > policy > deadline > key > "
                        "retry");
    assert_non_null(strstr(idem_server_chain(world->server),
                           "audit > tenant-from-header > "));
    idem_channel_close(acme);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_tenant_is_told_by_one_side_and_taken_by_the_other),
        TEST(a_call_without_a_tenant_is_turned_away_before_its_key),
        TEST(each_call_has_a_line_on_each_side),
        TEST(the_chain_says_where_they_stand),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
