#include "byhand.h"

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#define ANSWER_SIZE 256
#define LEASE_MS "30000"

/* Calls that wait for a connection of the pool, by the time they came. */
struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t some;
    int64_t *since_ns;
    unsigned head, count, size;
    bool over;
};

struct worker {
    pthread_t thread;
    const struct byhand_options *options;
    struct waiting *waiting;
    PGconn *database;
    redisContext *redis;
    struct tally *tally;
};

struct call {
    uint8_t key[16];
    uint64_t fingerprint, owner; /* big endian, as int8 travels */
    char answer[ANSWER_SIZE];
};

static void
die(const char *what, const char *why)
{
    fprintf(stderr, "byhand: %s: %s\n", what, why);
    exit(1);
}

static const char *const prepared[][2] = {
    {"claim", "INSERT INTO byhand_call (key, fingerprint, state, owner,"
              " lease_until) VALUES ($1::uuid, $2::int8, 0, $3::int8,"
              " now() + interval '30 s') ON CONFLICT (key) DO NOTHING"},
    {"complete", "UPDATE byhand_call SET state = 1, answer = $2::bytea"
                 " WHERE key = $1::uuid AND owner = $3::int8 AND state = 0"},
    {"business", "INSERT INTO byhand_business (key, amount)"
                 " VALUES ($1::uuid, 1)"},
    {"begin", "BEGIN"},
    {"commit", "COMMIT"},
};

static void
must(PGconn *database, PGresult *result, const char *what, const char *changed)
{
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        die(what, PQerrorMessage(database));
    if (changed && strcmp(PQcmdTuples(result), changed) != 0)
        die(what, "it changed another number of rows");
    PQclear(result);
}

void
byhand_prepare(const char *conninfo)
{
    PGconn *database = PQconnectdb(conninfo);

    if (PQstatus(database) != CONNECTION_OK)
        die("connect", PQerrorMessage(database));
    must(database,
         PQexec(database,
                "SET client_min_messages = warning;"
                "DROP TABLE IF EXISTS byhand_call, byhand_business;"
                "CREATE TABLE byhand_call (key uuid PRIMARY KEY,"
                " fingerprint int8 NOT NULL, state int2 NOT NULL,"
                " owner int8 NOT NULL, lease_until timestamptz NOT NULL,"
                " answer bytea) WITH (fillfactor = 50);"
                "CREATE TABLE byhand_business (id bigint GENERATED ALWAYS AS"
                " IDENTITY PRIMARY KEY, key uuid NOT NULL,"
                " amount int8 NOT NULL)"),
         "create", NULL);
    PQfinish(database);
}

static void
open_connections(struct worker *worker)
{
    worker->database = PQconnectdb(worker->options->conninfo);
    if (PQstatus(worker->database) != CONNECTION_OK)
        die("connect", PQerrorMessage(worker->database));
    for (size_t i = 0; i < sizeof prepared / sizeof *prepared; i++)
        must(worker->database,
             PQprepare(worker->database, prepared[i][0], prepared[i][1], 0,
                       NULL),
             "prepare", NULL);
    worker->redis = redisConnectUnix(worker->options->redis_socket);
    if (!worker->redis || worker->redis->err)
        die("redis", worker->redis ? worker->redis->errstr : "no memory");
}

static const int binary[] = {1, 1, 1};

/* A prepared statement and its parameters. */
struct step {
    const char *statement, *changed;
    int n;
    const char *values[3];
    int sizes[3];
};

static struct step
claim(const struct call *call)
{
    return (struct step){"claim",
                         "1",
                         3,
                         {(const char *)call->key,
                          (const char *)&call->fingerprint,
                          (const char *)&call->owner},
                         {sizeof call->key, 8, 8}};
}

static struct step
complete(const struct call *call)
{
    return (struct step){
        "complete",
        "1",
        3,
        {(const char *)call->key, call->answer, (const char *)&call->owner},
        {sizeof call->key, ANSWER_SIZE, 8}};
}

static struct step
do_business(const struct call *call)
{
    return (struct step){
        "business", "1", 1, {(const char *)call->key}, {sizeof call->key}};
}

static void
execute(struct worker *worker, struct step step)
{
    must(worker->database,
         PQexecPrepared(worker->database, step.statement, step.n, step.values,
                        step.sizes, binary, 1),
         step.statement, step.changed);
}

static void
send_step(struct worker *worker, const struct step *step)
{
    if (!PQsendQueryPrepared(worker->database, step->statement, step->n,
                             step->values, step->sizes, binary, 1))
        die(step->statement, PQerrorMessage(worker->database));
}

/* Two statements in one round trip. */
static void
execute_both(struct worker *worker, struct step first, struct step second)
{
    PGconn *database = worker->database;

    if (!PQenterPipelineMode(database))
        die("pipeline", PQerrorMessage(database));
    send_step(worker, &first);
    send_step(worker, &second);
    if (!PQpipelineSync(database))
        die("sync", PQerrorMessage(database));
    must(database, PQgetResult(database), first.statement, first.changed);
    PQclear(PQgetResult(database));
    must(database, PQgetResult(database), second.statement, second.changed);
    PQclear(PQgetResult(database));
    PQclear(PQgetResult(database));
    if (!PQexitPipelineMode(database))
        die("pipeline", PQerrorMessage(database));
}

static void
set_in_redis(struct worker *worker, const struct call *call, bool first)
{
    redisReply *reply =
        first
            ? redisCommand(worker->redis, "SET %b %b NX PX " LEASE_MS,
                           call->key, sizeof call->key, &call->owner,
                           sizeof call->owner)
            : redisCommand(worker->redis, "SET %b %b PX 60000", call->key,
                           sizeof call->key, call->answer, (size_t)ANSWER_SIZE);

    if (!reply || reply->type != REDIS_REPLY_STATUS)
        die("redis", worker->redis->errstr);
    freeReplyObject(reply);
}

static void
lease(struct worker *worker, const struct call *call)
{
    set_in_redis(worker, call, true);
    execute(worker, claim(call));
    execute(worker, complete(call));
    set_in_redis(worker, call, false);
}

static const struct step begin = {.statement = "begin"};
static const struct step commit = {.statement = "commit"};

static void
transact(struct worker *worker, const struct call *call)
{
    execute(worker, begin);
    execute(worker, claim(call));
    execute(worker, do_business(call));
    execute(worker, complete(call));
    execute(worker, commit);
}

static void
transact_in_three_trips(struct worker *worker, const struct call *call)
{
    execute_both(worker, begin, claim(call));
    execute(worker, do_business(call));
    execute_both(worker, complete(call), commit);
}

static void
serve(struct worker *worker)
{
    static void (*const as[])(struct worker *, const struct call *) = {
        [BYHAND_LEASED] = lease,
        [BYHAND_TRANSACTION] = transact,
        [BYHAND_THREE_TRIPS] = transact_in_three_trips,
    };
    struct call call = {.fingerprint = 1, .owner = htobe64(1)};

    memset(call.answer, 'a', sizeof call.answer);
    if (getrandom(call.key, sizeof call.key, 0) != sizeof call.key)
        die("getrandom", "short");
    as[worker->options->shape](worker, &call);
}

/* The time at which the next call came; false when the round is over. */
static bool
take(struct waiting *waiting, int64_t *since_ns)
{
    bool some;

    pthread_mutex_lock(&waiting->lock);
    while (waiting->count == 0 && !waiting->over)
        pthread_cond_wait(&waiting->some, &waiting->lock);
    some = !waiting->over;
    if (some) {
        *since_ns = waiting->since_ns[waiting->head];
        waiting->head = (waiting->head + 1) % waiting->size;
        waiting->count--;
    }
    pthread_mutex_unlock(&waiting->lock);
    return some;
}

static void
put(struct waiting *waiting, int64_t since_ns)
{
    pthread_mutex_lock(&waiting->lock);
    waiting->since_ns[(waiting->head + waiting->count++) % waiting->size] =
        since_ns;
    pthread_cond_signal(&waiting->some);
    pthread_mutex_unlock(&waiting->lock);
}

static void *
work(void *with)
{
    struct worker *worker = with;
    int64_t since_ns;

    while (take(worker->waiting, &since_ns)) {
        serve(worker);
        if (tally_add(worker->tally, since_ns))
            put(worker->waiting, now_ns());
    }
    return NULL;
}

static void
end_round(struct waiting *waiting)
{
    pthread_mutex_lock(&waiting->lock);
    waiting->over = true;
    pthread_cond_broadcast(&waiting->some);
    pthread_mutex_unlock(&waiting->lock);
}

static struct worker *
open_pool(const struct byhand_options *options, unsigned n,
          struct waiting *waiting, struct tally *tally)
{
    struct worker *workers = calloc(n, sizeof *workers);

    if (!workers)
        die("memory", "out");
    for (unsigned i = 0; i < n; i++) {
        workers[i].options = options;
        workers[i].waiting = waiting;
        workers[i].tally = tally;
        open_connections(&workers[i]);
    }
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            die("thread", "none");
    return workers;
}

static void
close_pool(struct worker *workers, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        PQfinish(workers[i].database);
        redisFree(workers[i].redis);
    }
    free(workers);
}

struct measure
byhand_run(const struct byhand_options *options)
{
    unsigned n =
        options->pool < options->in_flight ? options->pool : options->in_flight;
    struct tally *tally = tally_new();
    struct tally_window window = options->window;
    struct waiting waiting = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .some = PTHREAD_COND_INITIALIZER,
                              .since_ns =
                                  calloc(options->in_flight, sizeof(int64_t)),
                              .size = options->in_flight};
    struct worker *workers = open_pool(options, n, &waiting, tally);
    struct measure seen;

    if (!waiting.since_ns)
        die("memory", "out");
    for (unsigned i = 0; i < options->in_flight; i++)
        put(&waiting, now_ns());
    window.running = options->in_flight;
    seen = tally_run(tally, &window);
    end_round(&waiting);
    close_pool(workers, n);
    tally_free(tally);
    free(waiting.since_ns);
    return seen;
}
