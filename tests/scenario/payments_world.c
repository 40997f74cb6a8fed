#include "support.h"

#include "payments_world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <idem/call.h>
#include <idem/postgres.h>
#include <idem/sqlite.h>

#include "authority.h"
#include "child.h"
#include "handlers.h"
#include "postgres.h"

#define ADDRESS "inproc://payments-world"
#define READY_MS 10000

static struct payments_house house;
static struct postgres *postgres; /* NULL: the worlds are on SQLite */
static const char *tenant;        /* set while no call flies; or NULL */

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s", err->message);
}

static struct idem_store *
open_store(const struct payments_world *world)
{
    const struct idem_sqlite_options sqlite = {
        .path = world->books,
        .schema = payments_schema,
    };
    const struct idem_postgres_options options = {
        .conninfo = postgres ? postgres_conninfo(postgres) : NULL,
        .connections = POSTGRES_FEW_CONNECTIONS,
    };
    struct idem_store *store;
    struct idem_error err;

    must(postgres ? idem_postgres_open(&store, &options, &err)
                  : idem_sqlite_open(&store, &sqlite, &err),
         &err);
    return store;
}

static void
empty_postgres(void)
{
    struct idem_error err;

    postgres_sql(postgres, "SET client_min_messages = warning; "
                           "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    must(idem_postgres_migrate(postgres_conninfo(postgres), NULL, &err), &err);
    postgres_sql(postgres, "%s", payments_schema);
}

int
payments_world_use_postgres(void **state)
{
    (void)state;
    postgres = postgres_start(NULL);
    return 0;
}

int
payments_world_leave_postgres(void **state)
{
    (void)state;
    postgres_free(postgres);
    postgres = NULL;
    return 0;
}

static enum idem_step
let_in(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    if (tenant)
        call->tenant = idem_bytes_of(tenant);
    return IDEM_NEXT;
}

static void
stay(struct idem_interceptor *self)
{
    (void)self;
}

static struct idem_interceptor *
gatekeeper(void)
{
    static const struct idem_interceptor_ops ops = {
        .name = "gatekeeper",
        .band = IDEM_BAND_AUTH,
        .request = let_in,
        .free = stay,
    };
    static struct idem_interceptor one = {.ops = &ops};

    return &one;
}

void
payments_world_be(const char *name)
{
    tenant = name;
}

static void
start_server(struct payments_world *world)
{
    struct idem_store *store = open_store(world);
    struct idem_error err;

    must(idem_server_open(&world->server, store, NULL, NULL, &err), &err);
    must(idem_server_add(world->server, gatekeeper(), &err), &err);
    must(payments_register(world->server, &payments_house_handlers, &house,
                           &err),
         &err);
    must(idem_server_listen(world->server, ADDRESS, &err), &err);
    must(idem_server_start(world->server, &err), &err);
    must(idem_client_open(&world->channel, ADDRESS, NULL, &err), &err);
}

static void
stop_server(struct payments_world *world)
{
    idem_channel_close(world->channel);
    idem_server_free(world->server);
}

static bool
provider_listens(void *with)
{
    const struct payments_world *world = with;

    return access(world->provider, F_OK) == 0;
}

void
payments_world_start_provider(struct payments_world *world)
{
    const char *const words[] = {FAKE_PROVIDER, world->provider, world->log,
                                 NULL};
    char says[TEMPDIR_MAX + 32];
    const struct child_options options = {
        .log = tempdir_file(&world->dir, "provider.says", says, sizeof says),
    };

    world->provider_pid = child_start(&options, words);
    assert_true(child_wait_until(provider_listens, world, READY_MS));
}

void
payments_world_stop_provider(struct payments_world *world)
{
    child_stop(world->provider_pid, SIGKILL);
    world->provider_pid = 0;
    unlink(world->provider);
}

int
payments_world_open(void **state)
{
    struct payments_world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    tempdir_open(&world->dir);
    tempdir_file(&world->dir, "books.db", world->books, sizeof world->books);
    tempdir_file(&world->dir, "provider.sock", world->provider,
                 sizeof world->provider);
    tempdir_file(&world->dir, "provider.log", world->log, sizeof world->log);
    house.provider = world->provider;
    payments_world_start_provider(world);
    if (postgres)
        empty_postgres();
    start_server(world);
    *state = world;
    return 0;
}

int
payments_world_close(void **state)
{
    struct payments_world *world = *state;

    payments_world_be(NULL);
    stop_server(world);
    child_stop(world->provider_pid, SIGKILL);
    tempdir_close(&world->dir);
    free(world);
    return 0;
}

void
payments_world_restart(struct payments_world *world)
{
    stop_server(world);
    start_server(world);
}

int64_t
world_open(struct payments_world *world, const char *account, int64_t balance)
{
    payments_open_account_request request = PAYMENTS_OPEN_ACCOUNT_REQUEST_INIT;
    payments_open_account_reply *reply = NULL;
    int64_t opened = -1;

    request.account = account;
    request.balance = balance;
    if (payments_open_account(world->channel, &request, &reply, NULL, NULL) ==
        IDEM_OK)
        opened = reply->balance;
    payments_open_account_reply_free(reply);
    return opened;
}

int64_t
world_charge(struct payments_world *world, const char *key, const char *account,
             int64_t amount, const char *order, struct idem_outcome *outcome)
{
    const struct idem_call_options options = {.key = key};
    payments_charge_request request = PAYMENTS_CHARGE_REQUEST_INIT;
    payments_charge_reply *reply = NULL;
    int64_t balance = -1;

    request.account = account;
    request.amount = amount;
    request.order_id = order;
    if (payments_charge(world->channel, &request, &reply, &options, outcome) ==
        IDEM_OK)
        balance = reply->balance;
    payments_charge_reply_free(reply);
    return balance;
}

int64_t
world_transfer(struct payments_world *world, const char *source,
               const char *target, int64_t amount, struct idem_outcome *outcome)
{
    payments_transfer_request request = PAYMENTS_TRANSFER_REQUEST_INIT;
    payments_transfer_reply *reply = NULL;
    int64_t balance = -1;

    request.source = source;
    request.target = target;
    request.amount = amount;
    if (payments_transfer(world->channel, &request, &reply, NULL, outcome) ==
        IDEM_OK)
        balance = reply->source_balance;
    payments_transfer_reply_free(reply);
    return balance;
}

void
world_payout(struct payments_world *world, const char *key,
             const char *destination, int64_t amount, char *text, size_t size,
             struct idem_outcome *outcome)
{
    const struct idem_call_options options = {.key = key};
    payments_payout_request request = PAYMENTS_PAYOUT_REQUEST_INIT;
    payments_payout_reply *reply = NULL;

    *text = '\0';
    request.destination = destination;
    request.amount = amount;
    if (payments_payout(world->channel, &request, &reply, &options, outcome) ==
        IDEM_OK)
        snprintf(text, size, "%s", reply->reference);
    payments_payout_reply_free(reply);
}

/* The account, or a failed test. */
static void
read_account(struct payments_world *world, const char *account,
             int64_t *balance, int64_t *entries)
{
    payments_get_account_request request = PAYMENTS_GET_ACCOUNT_REQUEST_INIT;
    payments_get_account_reply *reply;
    struct idem_outcome outcome;

    request.account = account;
    if (payments_get_account(world->channel, &request, &reply, NULL,
                             &outcome) != IDEM_OK)
        fail_msg("%s", outcome.message);
    *balance = reply->balance;
    *entries = reply->entries;
    payments_get_account_reply_free(reply);
}

int64_t
world_balance(struct payments_world *world, const char *account)
{
    int64_t balance, entries;

    read_account(world, account, &balance, &entries);
    return balance;
}

int64_t
world_entries(struct payments_world *world, const char *account)
{
    int64_t balance, entries;

    read_account(world, account, &balance, &entries);
    return entries;
}

unsigned
world_paid(const struct payments_world *world)
{
    FILE *file = fopen(world->log, "re");
    unsigned lines = 0;
    int c;

    if (!file)
        return 0;
    while ((c = getc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}
