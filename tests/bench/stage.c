#include "support.h"

#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idem/postgres.h>
#include <idem/shield.h>

#include "byhand.h"
#include "postgres.h"
#include "redis.h"
#include "service.h"

#define INFO_MAX 8192

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status == IDEM_OK)
        return;
    fprintf(stderr, "bench: %s\n", err->message);
    exit(1);
}

static int
pid_of_redis(struct redis *redis)
{
    char info[INFO_MAX];
    const char *at;

    redis_say(redis, "INFO server", info, sizeof info);
    at = strstr(info, "process_id:");
    return at ? atoi(at + strlen("process_id:")) : 0;
}

static struct idem_store *
open_store(const char *conninfo)
{
    const struct idem_postgres_options options = {.conninfo = conninfo};
    struct idem_store *store = NULL;
    struct idem_error err;

    must(idem_postgres_open(&store, &options, &err), &err);
    return store;
}

static struct idem_shield *
open_shield(const struct redis *redis)
{
    const struct idem_redis_options options = {
        .url = redis_unix_url(redis),
        .secret = idem_bytes_of("sixteen bytes at least"),
    };
    struct idem_shield *shield = NULL;
    struct idem_error err;

    must(idem_redis_new(&shield, &options, &err), &err);
    return shield;
}

static void
start_servers(const char *settings, struct stage *stage)
{
    const struct postgres_options durable = {.durable = true,
                                             .settings = settings};
    struct idem_error err;

    stage->postgres = postgres_start(&durable);
    stage->redis = redis_start(NULL);
    stage->pids[0] = (int)postgres_sql(
        stage->postgres,
        "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int");
    stage->pids[1] = pid_of_redis(stage->redis);
    must(idem_postgres_migrate(postgres_conninfo(stage->postgres), NULL, &err),
         &err);
    postgres_sql(stage->postgres, BENCH_SCHEMA);
    byhand_prepare(postgres_conninfo(stage->postgres));
}

void
stage_open(struct stage *stage)
{
    struct idem_once_options once = {0};
    const char *conninfo;

    start_servers("shared_buffers = 512MB\n"
                  "max_wal_size = 4GB\n",
                  stage);
    conninfo = postgres_conninfo(stage->postgres);
    stage->server =
        bench_serve(open_store(conninfo), NULL, NULL, "tcp://127.0.0.1:0");
    once.no_memory = true; /* it would answer in place of Redis */
    once.shield = open_shield(stage->redis);
    stage->shielded =
        bench_serve(open_store(conninfo), &once, NULL, "tcp://127.0.0.1:0");
    stage->channel = bench_open(stage->server);
    stage->shielded_channel = bench_open(stage->shielded);
}

void
stage_close(struct stage *stage)
{
    idem_channel_close(stage->shielded_channel);
    idem_channel_close(stage->channel);
    idem_server_free(stage->shielded);
    idem_server_free(stage->server);
    redis_free(stage->redis);
    postgres_free(stage->postgres);
}
