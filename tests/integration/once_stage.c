#include "once_stage.h"

#include "child.h"
#include "postgres.h"
#include "redis.h"

#include <idem/deadline.h>
#include <idem/ledger.h>
#include <idem/postgres.h>
#include <idem/shield.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 10000

static struct postgres *postgres;
static struct redis *redis;

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

int
stage_servers_up(void **state)
{
    struct idem_error err;

    (void)state;
    postgres = postgres_start(NULL);
    redis = redis_start(NULL);
    must(idem_postgres_migrate(postgres_conninfo(postgres), NULL, &err), &err);
    postgres_strict(postgres);
    postgres_sql(postgres, EFFECTS_SCHEMA);
    return 0;
}

int
stage_servers_down(void **state)
{
    (void)state;
    redis_free(redis);
    postgres_free(postgres);
    return 0;
}

struct postgres *
stage_postgres(void)
{
    return postgres;
}

struct redis *
stage_redis(void)
{
    return redis;
}

/* --- Building --- */

static struct idem_store *
open_store(struct stage *stage)
{
    const struct idem_sqlite_options sqlite = {.path = stage->books,
                                               .schema = EFFECTS_SCHEMA};
    struct idem_postgres_options options = {0};
    struct idem_store *store;
    struct idem_error err;

    if (stage->kind != STAGE_POSTGRES)
        must(idem_sqlite_open(&store, &sqlite, &err), &err);
    else {
        options.conninfo = postgres_conninfo(postgres);
        options.connections = POSTGRES_FEW_CONNECTIONS;
        must(idem_postgres_open(&store, &options, &err), &err);
    }
    return store;
}

static struct idem_shield *
open_shield(struct stage *stage)
{
    struct idem_redis_options options = {
        .secret = idem_bytes_of("sixteen bytes and more"),
        .budget_ms = 1000,
    };
    struct idem_shield *shield;
    struct idem_error err;

    if (stage->kind != STAGE_POSTGRES)
        return NULL;
    options.url = redis_url(redis);
    must(idem_redis_new(&shield, &options, &err), &err);
    return shield;
}

static const char *
address_of(const struct stage *stage)
{
    return stage->kind == STAGE_SQLITE_INPROC ? "inproc://once-stage"
                                              : "tcp://127.0.0.1:0";
}

static void
open_server(struct stage *stage, unsigned i, struct idem_interceptor *extra)
{
    const struct idem_server_options server_options = {.drain_ms =
                                                           stage->drain_ms};
    struct idem_once_options options = {.shield = open_shield(stage)};
    struct idem_store *store = open_store(stage);
    struct idem_server *server;
    struct idem_error err;

    must(idem_server_new(&server, &server_options, &err), &err);
    must(idem_once_new(&stage->once[i], store, &options, &err), &err);
    must(idem_server_add(server, stage->once[i], &err), &err);
    must(idem_ledger_add(server, store, &err), &err);
    must(idem_server_add(server, idem_deadline_new(), &err), &err);
    if (extra)
        must(idem_server_add(server, extra, &err), &err);
    must(effects_register(server, &effects_handlers, &stage->effects, &err),
         &err);
    must(idem_server_listen(server, address_of(stage), &err), &err);
    must(idem_server_start(server, &err), &err);
    stage->servers[i] = server;
}

static void
open_channel(struct stage *stage, unsigned i, struct idem_interceptor *extra)
{
    struct idem_error err;

    must(idem_client_open(&stage->channels[i],
                          idem_server_address(stage->servers[i], 0), NULL,
                          &err),
         &err);
    if (extra)
        must(idem_channel_add(stage->channels[i], extra, &err), &err);
}

static void
build(struct stage *stage, struct idem_interceptor *on_server,
      struct idem_interceptor *on_client)
{
    for (unsigned i = 0; i < stage->n; i++) {
        open_server(stage, i, i == 0 ? on_server : NULL);
        open_channel(stage, i, i == 0 ? on_client : NULL);
    }
}

static void
tear_down(struct stage *stage)
{
    for (unsigned i = 0; i < stage->n; i++) {
        idem_channel_close(stage->channels[i]);
        idem_server_free(stage->servers[i]);
    }
}

void
stage_rebuild(struct stage *stage, struct idem_interceptor *on_server,
              struct idem_interceptor *on_client)
{
    tear_down(stage);
    build(stage, on_server, on_client);
}

static int
set_up(void **state, enum stage_kind kind, unsigned n)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    stage->kind = kind;
    stage->n = n;
    tempdir_open(&stage->dir);
    tempdir_file(&stage->dir, "books", stage->books, sizeof(stage->books));
    tempdir_file(&stage->dir, "pushes", stage->push_log,
                 sizeof(stage->push_log));
    effects_init(&stage->effects, stage->push_log);
    if (kind == STAGE_POSTGRES)
        postgres_sql(postgres, "TRUNCATE effects");
    build(stage, NULL, NULL);
    *state = stage;
    return 0;
}

int
stage_sqlite_inproc(void **state)
{
    return set_up(state, STAGE_SQLITE_INPROC, 1);
}

int
stage_sqlite_tcp(void **state)
{
    return set_up(state, STAGE_SQLITE_TCP, 1);
}

int
stage_both(void **state)
{
    return set_up(state, STAGE_POSTGRES, 2);
}

int
stage_down(void **state)
{
    struct stage *stage = *state;

    effects_open(&stage->effects); /* a test that failed left them held */
    tear_down(stage);
    effects_fini(&stage->effects);
    tempdir_close(&stage->dir);
    free(stage);
    return 0;
}

/* --- Calling --- */

static struct called
call_on(struct idem_channel *channel, stage_call_fn *call, const char *key,
        const effects_add_request *request)
{
    struct idem_call_options options = {.key = key};
    struct called called = {.status = IDEM_OK};
    effects_add_reply *reply = NULL;

    called.status = call(channel, request, &reply, &options, &called.outcome);
    if (reply) {
        called.number = reply->number;
        called.amount = reply->amount;
        called.body_size = reply->body.len;
        called.body = malloc(reply->body.len + 1);
        if (reply->body.len > 0)
            memcpy(called.body, reply->body.data, reply->body.len);
        effects_add_reply_free(reply);
    }
    return called;
}

struct called
stage_call(struct stage *stage, stage_call_fn *call, const char *key,
           const effects_add_request *request)
{
    return call_on(stage->channels[0], call, key, request);
}

effects_add_request
stage_request(int64_t amount)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = amount;
    return request;
}

struct called
stage_add(struct stage *stage, const char *key, int64_t amount)
{
    effects_add_request request = stage_request(amount);

    return stage_call(stage, effects_add, key, &request);
}

void
called_free(struct called *called)
{
    free(called->body);
    called->body = NULL;
}

void
assert_replay_of(const struct called *replay, const struct called *first)
{
    if (replay->status != first->status)
        fail_msg("%s, not %s: %s", idem_status_name(replay->status),
                 idem_status_name(first->status), replay->outcome.message);
    assert_int_equal(replay->outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_true(replay->outcome.final);
    assert_int_equal(replay->outcome.executions, 1);
    assert_string_equal(replay->outcome.message, first->outcome.message);
    assert_int_equal(replay->number, first->number);
    assert_int_equal(replay->amount, first->amount);
    assert_int_equal(replay->body_size, first->body_size);
    if (first->body_size > 0)
        assert_memory_equal(replay->body, first->body, first->body_size);
}

struct stage_thread {
    pthread_t thread;
    struct idem_channel *channel;
    stage_call_fn *call;
    char key[256];
    effects_add_request request;
    struct called called;
};

static void *
run_thread(void *arg)
{
    struct stage_thread *thread = arg;

    thread->called =
        call_on(thread->channel, thread->call, thread->key, &thread->request);
    return NULL;
}

struct stage_thread *
stage_start(struct stage *stage, unsigned server, stage_call_fn *call,
            const char *key, const effects_add_request *request)
{
    struct stage_thread *thread = calloc(1, sizeof(*thread));

    thread->channel = stage->channels[server];
    thread->call = call;
    snprintf(thread->key, sizeof(thread->key), "%s", key);
    thread->request = *request;
    assert_int_equal(pthread_create(&thread->thread, NULL, run_thread, thread),
                     0);
    return thread;
}

struct called
stage_join(struct stage_thread *thread)
{
    struct called called;

    pthread_join(thread->thread, NULL);
    called = thread->called;
    free(thread);
    return called;
}

/* --- Looking --- */

int64_t
stage_effects(struct stage *stage)
{
    effects_count_request request = EFFECTS_COUNT_REQUEST_INIT;
    effects_count_reply *reply;
    struct idem_outcome outcome;
    int64_t effects;

    if (effects_count(stage->channels[0], &request, &reply, NULL, &outcome) !=
        IDEM_OK)
        fail_msg("count: %s", outcome.message);
    effects = reply->effects;
    effects_count_reply_free(reply);
    return effects;
}

struct idem_once_counts
stage_counts(struct stage *stage, unsigned server)
{
    struct idem_once_counts counts;

    idem_once_counts(stage->once[server], &counts);
    return counts;
}

struct awaited {
    struct stage *stage;
    unsigned server;
    uint64_t attached, claims;
};

static bool
has_come_so_far(void *with)
{
    const struct awaited *awaited = with;
    struct idem_once_counts counts =
        stage_counts(awaited->stage, awaited->server);

    return counts.attached >= awaited->attached &&
           counts.claims >= awaited->claims;
}

static void
await(struct awaited awaited)
{
    struct idem_once_counts counts;

    if (child_wait_until(has_come_so_far, &awaited, PATIENCE_MS))
        return;
    counts = stage_counts(awaited.stage, awaited.server);
    fail_msg("after %d ms %d are attached and %d operations asked", PATIENCE_MS,
             (int)counts.attached, (int)counts.claims);
}

void
stage_await_attached(struct stage *stage, unsigned server, uint64_t attached)
{
    await((struct awaited){stage, server, .attached = attached});
}

void
stage_await_claims(struct stage *stage, unsigned server, uint64_t claims)
{
    await((struct awaited){stage, server, .claims = claims});
}
