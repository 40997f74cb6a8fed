#include "ledger_world.h"

#include <idem/call.h>
#include <idem/postgres.h>
#include <idem/sqlite.h>

#include <stdlib.h>

struct postgres *ledger_postgres;

void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

/* As an interceptor that checks tokens would. */
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
open_store(const struct ledger_world *world)
{
    const struct idem_sqlite_options sqlite = {.path = world->books,
                                               .schema = EFFECTS_SCHEMA};
    struct idem_postgres_options options = {0};
    struct idem_store *store;
    struct idem_error err;

    if (ledger_postgres) {
        options.conninfo = postgres_conninfo(ledger_postgres);
        options.connections = POSTGRES_FEW_CONNECTIONS;
        must(idem_postgres_open(&store, &options, &err), &err);
    } else {
        must(idem_sqlite_open(&store, &sqlite, &err), &err);
    }
    return store;
}

static void
start(struct ledger_world *world, struct idem_store *store)
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

int
ledger_world_up(void **state)
{
    struct ledger_world *world = calloc(1, sizeof *world);

    tempdir_open(&world->dir);
    tempdir_file(&world->dir, "books", world->books, sizeof world->books);
    tempdir_file(&world->dir, "pushes", world->push_log,
                 sizeof world->push_log);
    effects_init(&world->effects, world->push_log);
    start(world, open_store(world));
    *state = world;
    return 0;
}

int
ledger_world_down(void **state)
{
    struct ledger_world *world = *state;

    idem_channel_close(world->channel);
    idem_server_free(world->server);
    effects_fini(&world->effects);
    tempdir_close(&world->dir);
    free(world);
    return 0;
}

enum idem_status
ledger_add(struct ledger_world *world, const char *key,
           struct idem_outcome *outcome)
{
    const struct idem_call_options options = {.key = key};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = 7;
    return effects_add(world->channel, &request, NULL, &options, outcome);
}

enum idem_resolved
ledger_state(struct ledger_world *world, ask_fn *ask,
             const struct idem_method *method, const char *key)
{
    struct idem_resolution resolution;
    enum idem_resolved state;
    struct idem_error err;

    must(ask(world->channel, method, key, 0, &resolution, &err), &err);
    state = resolution.state;
    idem_resolution_fini(&resolution);
    return state;
}
