#include "store_sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_MS 5000
#define DAYS_AHEAD 2
#define MAINTAIN_EVERY_MS 60000

static struct sqlite_store *
store_of(struct idem_store *store)
{
    return (struct sqlite_store *)store;
}

static void
claim(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_CLAIM);
}

static void
complete(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_COMPLETE);
}

static void
release(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_RELEASE);
}

static void
run(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_RUN);
}

static void
doubt(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_DOUBT);
}

static void
renew(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_RENEW);
}

static void
mark(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_MARK);
}

static void
look(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_looker_submit(store_of(store), ticket, SQLITE_OP_LOOK);
}

static void
abandon(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_ABANDON);
}

static void
settle(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_SETTLE);
}

static void
watermark(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_looker_submit(store_of(store), ticket, SQLITE_OP_WATERMARK);
}

static void
acknowledge(struct idem_store *store, struct idem_ticket *ticket)
{
    sqlite_writer_submit(store_of(store), ticket, SQLITE_OP_ACKNOWLEDGE);
}

static void
step_is_done(struct idem_ticket *ticket)
{
    struct sqlite_maintenance *maintenance =
        (struct sqlite_maintenance *)ticket;

    pthread_mutex_lock(&maintenance->lock);
    maintenance->answered = true;
    pthread_cond_signal(&maintenance->wake);
    pthread_mutex_unlock(&maintenance->lock);
}

/* One step among the writer's other work, so that nobody waits for all. */
static bool
maintain_step(struct sqlite_store *store, struct sqlite_maintenance *step)
{
    step->answered = false;
    sqlite_writer_submit(store, &step->base, SQLITE_OP_MAINTAIN);
    pthread_mutex_lock(&step->lock);
    while (!step->answered)
        pthread_cond_wait(&step->wake, &step->lock);
    pthread_mutex_unlock(&step->lock);
    return step->base.verdict == IDEM_VERDICT_MINE;
}

static enum idem_status
maintain(struct idem_store *store, struct idem_error *err)
{
    struct sqlite_maintenance step = {
        .base = {.done = step_is_done, .deadline_ns = INT64_MAX},
        .more = true,
    };
    enum idem_status status = IDEM_OK;

    pthread_mutex_init(&step.lock, NULL);
    pthread_cond_init(&step.wake, NULL);
    while (status == IDEM_OK && step.more)
        if (!maintain_step(store_of(store), &step))
            status = idem_fail(err, step.base.error.status, "%s",
                               step.base.error.message);
    pthread_cond_destroy(&step.wake);
    pthread_mutex_destroy(&step.lock);
    return status;
}

static void
free_parts(struct sqlite_store *store)
{
    sqlite_readers_close(store);
    sqlite_db_close(&store->db);
    pthread_mutex_destroy(&store->writer.lock);
    pthread_cond_destroy(&store->writer.wake);
    pthread_mutex_destroy(&store->looker.lock);
    pthread_cond_destroy(&store->looker.wake);
    pthread_mutex_destroy(&store->readers_lock);
    free(store->path);
    free(store);
}

static void
free_store(struct idem_store *base)
{
    struct sqlite_store *store = store_of(base);

    sqlite_looker_stop(store);
    sqlite_writer_stop(store);
    free_parts(store);
}

static void
tell_epoch(struct idem_store *base, char *text)
{
    snprintf(text, IDEM_EPOCH_MAX, "%s", store_of(base)->epoch);
}

static const struct idem_store_ops ops = {
    .name = "sqlite",
    .claim = claim,
    .complete = complete,
    .release = release,
    .run = run,
    .doubt = doubt,
    .renew = renew,
    .mark = mark,
    .look = look,
    .abandon = abandon,
    .settle = settle,
    .watermark = watermark,
    .acknowledge = acknowledge,
    .epoch = tell_epoch,
    .begin_read = sqlite_begin_read,
    .end_read = sqlite_end_read,
    .maintain = maintain,
    .free = free_store,
};

static void
name_savepoint(struct sqlite_store *store)
{
    uint64_t nonce[2];

    store->clock->random(store->clock, nonce, sizeof nonce);
    snprintf(store->savepoint, sizeof store->savepoint,
             "idem_h_%016" PRIx64 "%016" PRIx64, nonce[0], nonce[1]);
}

/* Whether a backup was put in the file's place since is known to nobody, so
 * that an epoch ends with its process. */
static void
name_epoch(struct sqlite_store *store)
{
    uint64_t nonce[2];

    store->clock->random(store->clock, nonce, sizeof nonce);
    snprintf(store->epoch, sizeof store->epoch, "%016" PRIx64 "%016" PRIx64,
             nonce[0], nonce[1]);
}

static void
init_locks(struct sqlite_store *store)
{
    pthread_mutex_init(&store->writer.lock, NULL);
    pthread_cond_init(&store->writer.wake, NULL);
    pthread_mutex_init(&store->looker.lock, NULL);
    pthread_cond_init(&store->looker.wake, NULL);
    pthread_mutex_init(&store->readers_lock, NULL);
}

static struct sqlite_store *
make(const struct idem_sqlite_options *options)
{
    struct sqlite_store *store = calloc(1, sizeof *store);

    if (!store)
        return NULL;
    store->base.ops = &ops;
    store->clock = options->clock ? options->clock : idem_clock_system();
    store->path = strdup(options->path);
    store->busy_ms = options->busy_ms ? options->busy_ms : BUSY_MS;
    store->days_ahead = options->days_ahead ? options->days_ahead : DAYS_AHEAD;
    store->maintain_every_ms = options->maintain_every_ms
                                   ? options->maintain_every_ms
                                   : MAINTAIN_EVERY_MS;
    init_locks(store);
    if (store->path)
        return store;
    free_parts(store);
    return NULL;
}

static enum idem_status
open_file(struct sqlite_store *store, const char *schema,
          struct idem_error *err)
{
    enum idem_status status =
        sqlite_db_open(&store->db, store->path, false, store->busy_ms, err);
    bool more;

    if (status == IDEM_OK)
        status = sqlite_schema_apply(&store->db, schema, err);
    if (status == IDEM_OK)
        status = sqlite_days_run(store, &more, err);
    return status;
}

static enum idem_status
start_threads(struct sqlite_store *store, struct idem_error *err)
{
    enum idem_status status = sqlite_writer_start(store, err);

    if (status != IDEM_OK)
        return status;
    status = sqlite_looker_start(store, err);
    if (status != IDEM_OK)
        sqlite_writer_stop(store);
    return status;
}

static enum idem_status
check(const struct idem_sqlite_options *options, struct idem_error *err)
{
    const char *path = options->path;

    if (path && *path && strcmp(path, ":memory:") != 0)
        return IDEM_OK;
    return idem_fail(err, IDEM_INVALID_ARGUMENT,
                     "path: an authority needs a file");
}

enum idem_status
idem_sqlite_open(struct idem_store **out,
                 const struct idem_sqlite_options *options,
                 struct idem_error *err)
{
    enum idem_status status = check(options, err);
    struct sqlite_store *store;

    if (status != IDEM_OK)
        return status;
    store = make(options);
    if (!store)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    name_epoch(store);
    name_savepoint(store);
    status = open_file(store, options->schema, err);
    if (status == IDEM_OK)
        status = start_threads(store, err);
    if (status == IDEM_OK)
        *out = &store->base;
    else
        free_parts(store);
    return status;
}
