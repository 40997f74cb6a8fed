#include "postgres_world.h"

#include "child.h"
#include "tx.h"

#include <libpq-fe.h>
#include <stdlib.h>

static int64_t
wall_ms(void *with)
{
    struct postgres_world *world = with;

    return postgres_sql(
        world->postgres,
        "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
}

static void
pass_ms(void *with, int64_t ms)
{
    struct postgres_world *world = with;

    postgres_sql(world->postgres,
                 "UPDATE idem_record SET lease_until = lease_until - "
                 "%lld * interval '1 ms'",
                 (long long)ms);
}

static struct idem_store *
open_with(const struct idem_postgres_options *options)
{
    struct idem_store *store = NULL;
    struct idem_error err;

    if (idem_postgres_open(&store, options, &err) != IDEM_OK)
        fail_msg("idem_postgres_open: %s", err.message);
    return store;
}

static void
make_schema(struct postgres_world *world)
{
    struct idem_error err;

    if (idem_postgres_migrate(postgres_conninfo(world->postgres), NULL, &err) !=
        IDEM_OK)
        fail_msg("idem_postgres_migrate: %s", err.message);
    postgres_strict(world->postgres);
    postgres_sql(world->postgres,
                 "CREATE TABLE effects (key TEXT, amount BIGINT "
                 "CHECK (amount > -1000), id BIGINT UNIQUE DEFERRABLE "
                 "INITIALLY IMMEDIATE, body BYTEA)");
}

struct postgres_world *
world_open(bool durable)
{
    const struct postgres_options options = {.durable = durable};
    struct postgres_world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    world->postgres = postgres_start(&options);
    world->proxy = tcp_proxy_start(postgres_port(world->postgres));
    world->factory = (struct suite_factory){
        .name = "postgres",
        .with = world,
        .pass_ms = pass_ms,
        .wall_ms = wall_ms,
        .clock = idem_clock_system(),
        .lease_ms = 10000,
    };
    world->suite.factory = &world->factory;
    world->suite.minted = true;
    world->options = (struct idem_postgres_options){
        .conninfo =
            postgres_conninfo_at(world->postgres, tcp_proxy_port(world->proxy)),
        .connections = POSTGRES_FEW_CONNECTIONS,
        .maintain_every_ms = -1,
    };
    make_schema(world);
    world->suite.store = open_with(&world->options);
    return world;
}

void
world_close(struct postgres_world *world)
{
    idem_store_free(world->suite.store);
    tcp_proxy_free(world->proxy);
    postgres_free(world->postgres);
    free(world);
}

int
world_up(void **state)
{
    *state = world_open(false);
    return 0;
}

int
world_down(void **state)
{
    world_close(*state);
    return 0;
}

void
world_reopen(struct postgres_world *world)
{
    idem_store_free(world->suite.store);
    world->suite.store = open_with(&world->options);
}

void
world_maintain(struct postgres_world *world)
{
    struct idem_error err;

    if (world->suite.store->ops->maintain(world->suite.store, &err) != IDEM_OK)
        fail_msg("maintain: %s", err.message);
}

struct idem_store *
world_store(struct postgres_world *world)
{
    struct idem_postgres_options options = world->options;

    options.conninfo = postgres_conninfo(world->postgres);
    return open_with(&options);
}

void
world_call(struct suite_call *call, struct postgres_world *world)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key(&world->suite, key);
    call_open(call, &world->suite, key, IDEM_MODE_TRANSACTION, 1);
}

static bool
is_settled(void *with)
{
    enum idem_verdict verdict = call_claim(with);

    return verdict != IDEM_VERDICT_FAILED && verdict != IDEM_VERDICT_RUNNING;
}

enum idem_verdict
world_claim(struct suite_call *call)
{
    if (!child_wait_until(is_settled, call, 60000))
        fail_msg("no claim in time: %s", call->ticket.error.message);
    return call->ticket.verdict;
}

void
world_pay(struct suite_call *call)
{
    while (world_claim(call) == IDEM_VERDICT_MINE) {
        if (call_effect(call, 1) != IDEM_OK)
            (void)call_release(call);
        else if (call_complete(call, IDEM_OK, "paid") == IDEM_VERDICT_MINE)
            return;
    }
    assert_int_equal(call->ticket.verdict, IDEM_VERDICT_DONE);
    assert_text(call->ticket.answer.reply, "paid");
}

bool
world_raw(struct suite_call *call, const char *sql)
{
    struct idem_tx *tx = call->ticket.tx;
    PGresult *result = PQexec(tx->ops->postgres(tx), sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    return status != PGRES_FATAL_ERROR && status != PGRES_BAD_RESPONSE;
}

int64_t
world_effects(struct postgres_world *world, const struct suite_call *call)
{
    return postgres_sql(world->postgres,
                        "SELECT count(*) FROM effects WHERE key = '%s'",
                        call->key);
}

int64_t
world_records(struct postgres_world *world, const struct suite_call *call)
{
    return postgres_sql(world->postgres,
                        "SELECT count(*) FROM idem_record WHERE key_text = "
                        "'%s'",
                        call->key);
}

int64_t
world_backend(struct suite_call *call)
{
    struct idem_rows *rows;

    assert_int_equal(idem_sql(call->ticket.tx, &rows, NULL,
                              "SELECT pg_backend_pid()", IDEM_NO_VALUES),
                     IDEM_OK);
    return idem_rows_int(rows, 0, 0);
}

void
assert_runs_again(struct postgres_world *world, struct suite_call *call)
{
    assert_int_equal(world_effects(world, call), 0);
    assert_int_equal(world_records(world, call), 0);
    world_pay(call);
    assert_int_equal(world_effects(world, call), 1);
    call_close(call);
}
