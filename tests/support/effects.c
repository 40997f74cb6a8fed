#include "effects.h"

#include "effects_inside.h"

#include <idem/step.h>
#include <idem/tx.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 10

void
effects_init(struct effects *effects, const char *push_log)
{
    *effects = (struct effects){.push_log = push_log};
    pthread_mutex_init(&effects->lock, NULL);
    pthread_cond_init(&effects->changed, NULL);
}

void
effects_fini(struct effects *effects)
{
    pthread_cond_destroy(&effects->changed);
    pthread_mutex_destroy(&effects->lock);
}

static void
set_held(struct effects *effects, bool held)
{
    pthread_mutex_lock(&effects->lock);
    effects->held = held;
    pthread_cond_broadcast(&effects->changed);
    pthread_mutex_unlock(&effects->lock);
}

void
effects_hold(struct effects *effects)
{
    set_held(effects, true);
}

void
effects_open(struct effects *effects)
{
    set_held(effects, false);
}

void
effects_await(struct effects *effects, unsigned inside)
{
    struct timespec until;
    bool there;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&effects->lock);
    while (effects->inside != inside &&
           pthread_cond_timedwait(&effects->changed, &effects->lock, &until) ==
               0)
        continue;
    there = effects->inside == inside;
    pthread_mutex_unlock(&effects->lock);
    IDEM_ASSERT(there);
}

void
effects_fail(struct effects *effects, unsigned times, enum idem_status status)
{
    pthread_mutex_lock(&effects->lock);
    effects->left_failing = times;
    effects->fail_with = status;
    pthread_mutex_unlock(&effects->lock);
}

unsigned
effects_runs(struct effects *effects)
{
    unsigned runs;

    pthread_mutex_lock(&effects->lock);
    runs = effects->runs;
    pthread_mutex_unlock(&effects->lock);
    return runs;
}

unsigned
effects_pushes(const char *push_log, const char *key)
{
    char line[512];
    unsigned lines = 0;
    FILE *file = fopen(push_log, "r");

    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file))
        if (!key ||
            (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ' '))
            lines++;
    fclose(file);
    return lines;
}

/* --- Handlers --- */

static void
begin(struct effects *effects)
{
    pthread_mutex_lock(&effects->lock);
    effects->runs++;
    pthread_mutex_unlock(&effects->lock);
}

void
effects_take_time(const effects_add_request *request)
{
    struct timespec time = {request->hold_ms / 1000,
                            request->hold_ms % 1000 * 1000000};

    if (request->hold_ms > 0)
        nanosleep(&time, NULL);
}

/* After the effect: stay inside while held, then say how it ends. */
static enum idem_status
linger(struct effects *effects, const effects_add_request *request)
{
    enum idem_status status = (enum idem_status)request->fail_with;

    effects_take_time(request);
    pthread_mutex_lock(&effects->lock);
    effects->inside++;
    pthread_cond_broadcast(&effects->changed);
    while (effects->held && (effects->held_amount == 0 ||
                             effects->held_amount == request->amount))
        pthread_cond_wait(&effects->changed, &effects->lock);
    effects->inside--;
    if (effects->left_failing > 0) {
        effects->left_failing--;
        status = effects->fail_with;
    }
    pthread_cond_broadcast(&effects->changed);
    pthread_mutex_unlock(&effects->lock);
    return status;
}

static enum idem_status
reply_to(struct idem_context *context, const effects_add_request *request,
         effects_add_reply *reply)
{
    struct effects *effects = idem_context_user(context);
    enum idem_status status = linger(effects, request);

    if (status != IDEM_OK)
        return idem_context_fail(context, status, "told to fail, amount %d",
                                 (int)request->amount);
    reply->amount = request->amount;
    if (request->reply_bytes == UINT32_MAX) {
        reply->body.len = 1;
        return IDEM_OK;
    }
    reply->body.len = request->reply_bytes;
    reply->body.data = idem_context_alloc(context, request->reply_bytes + 1);
    for (size_t i = 0; i < reply->body.len; i++)
        reply->body.data[i] = (uint8_t)i; /* NULs too (B012) */
    return IDEM_OK;
}

static enum idem_status
push_as(struct idem_context *context, const char *name,
        const effects_add_request *request, effects_add_reply *reply)
{
    struct effects *effects = idem_context_user(context);
    char line[400];
    int size =
        snprintf(line, sizeof(line), "%s %d\n", name, (int)request->amount);
    int file;

    begin(effects);
    if (!effects->push_log)
        return idem_context_fail(context, IDEM_INTERNAL, "no push log");
    file = open(effects->push_log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
                0600);
    if (file < 0 || write(file, line, (size_t)size) != size)
        return idem_context_fail(context, IDEM_INTERNAL, "the push log");
    close(file);
    return reply_to(context, request, reply);
}

static enum idem_status
push(struct idem_context *context, const effects_add_request *request,
     effects_add_reply *reply)
{
    const struct effects *effects = idem_context_user(context);
    enum idem_status status =
        push_as(context, idem_context_key(context), request, reply);

    if (status == IDEM_OK)
        reply->number = effects_pushes(effects->push_log, NULL);
    return status;
}

static enum idem_status
note(struct idem_context *context, const effects_add_request *request,
     effects_add_reply *reply)
{
    return push_as(context, request->note, request, reply);
}

enum idem_status
effects_row(struct idem_context *context, int64_t amount, int64_t *number)
{
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);
    struct idem_rows *rows;

    begin(idem_context_user(context));
    if (!tx)
        return idem_context_fail_with(context, &err);
    if (idem_sql(tx, &rows, &err,
                 "INSERT INTO effects (number, key, amount) "
                 "SELECT count(*) + 1, $1, $2 FROM effects RETURNING number",
                 IDEM_VALUES(idem_text(idem_context_key(context)),
                             idem_int(amount))) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    *number = idem_rows_int(rows, 0, 0);
    return IDEM_OK;
}

static enum idem_status
add(struct idem_context *context, const effects_add_request *request,
    effects_add_reply *reply)
{
    const struct effects *effects = idem_context_user(context);
    enum idem_status status;

    if (effects->outside)
        return push(context, request, reply);
    status = effects_row(context, request->amount, &reply->number);
    return status == IDEM_OK ? reply_to(context, request, reply) : status;
}

/* A connection that others may share is not handed out. */
static enum idem_status
add_grouped(struct idem_context *context, const effects_add_request *request,
            effects_add_reply *reply)
{
    if (idem_context_postgres(context) || idem_context_sqlite(context))
        return idem_context_fail(context, IDEM_DATA_LOSS,
                                 "it could commit for the others");
    return add(context, request, reply);
}

/* What add has written under the key; fails when it is told to. */
static enum idem_status
rebuild_add(struct idem_context *context, const effects_add_request *request,
            effects_add_reply *reply)
{
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);
    struct idem_rows *rows;

    if (!tx)
        return idem_context_fail_with(context, &err);
    if (idem_sql(tx, &rows, &err, "SELECT number FROM effects WHERE key = $1",
                 IDEM_VALUES(idem_text(idem_context_key(context)))) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    if (idem_rows_count(rows) != 1)
        return idem_context_fail(context, IDEM_NOT_FOUND, "no such effect");
    reply->number = idem_rows_int(rows, 0, 0);
    return reply_to(context, request, reply);
}

/* As add, in two halves. */
static enum idem_status
add_stated_statements(struct idem_context *context,
                      const effects_add_request *request,
                      struct idem_statements *statements)
{
    begin(idem_context_user(context));
    if (request->amount < 0)
        return idem_context_fail(context, IDEM_INVALID_ARGUMENT,
                                 "an amount is not negative");
    idem_statement_add(
        statements,
        "INSERT INTO effects (number, key, amount) "
        "SELECT count(*) + 1, $1, $2 FROM effects RETURNING number",
        IDEM_VALUES(idem_text(idem_context_key(context)),
                    idem_int(request->amount)));
    return IDEM_OK;
}

static enum idem_status
add_stated_reply(struct idem_context *context,
                 const effects_add_request *request,
                 const struct idem_rows *const *rows, effects_add_reply *reply)
{
    reply->number = idem_rows_int(rows[0], 0, 0);
    return reply_to(context, request, reply);
}

/* As push; a crash before the mark has begun nothing. */
static enum idem_status
push_step(struct idem_context *context, const effects_add_request *request,
          effects_add_reply *reply)
{
    struct idem_error err;

    if (idem_step(context, "push", &err) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    return push(context, request, reply);
}

/* Looks for the key where push has written it; or says what it is told. */
static enum idem_probed
probe_push(struct idem_context *context, const effects_add_request *request,
           effects_add_reply *reply)
{
    struct effects *effects = idem_context_user(context);
    unsigned pushes =
        effects_pushes(effects->push_log, idem_context_key(context));

    pthread_mutex_lock(&effects->lock);
    effects->probes++;
    pthread_mutex_unlock(&effects->lock);
    if (request->probe_says > 0) {
        (void)idem_context_fail(context, IDEM_UNAVAILABLE, "told to say so");
        return (enum idem_probed)(request->probe_says - 1);
    }
    if (pushes == 0)
        return IDEM_PROBED_NOT_DONE;
    reply->number = pushes;
    reply->amount = request->amount;
    return IDEM_PROBED_DONE;
}

static enum idem_status
count(struct idem_context *context, const effects_count_request *request,
      effects_count_reply *reply)
{
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);
    struct idem_rows *rows;

    (void)request;
    if (!tx)
        return idem_context_fail_with(context, &err);
    if (idem_sql(tx, &rows, &err,
                 "SELECT count(*), CAST(coalesce(sum(amount), 0) AS BIGINT) "
                 "FROM effects",
                 IDEM_NO_VALUES) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    reply->effects = idem_rows_int(rows, 0, 0);
    reply->sum = idem_rows_int(rows, 0, 1);
    return IDEM_OK;
}

const struct effects_handlers effects_handlers = {
    .add = add,
    .add_or_busy = add,
    .add_always = add,
    .add_never = add,
    .add_order = add,
    .add_loose = add,
    .add_secret = add,
    .add_small = add,
    .add_digest = add,
    .add_rebuild = add,
    .add_rebuild_rebuild = rebuild_add,
    .add_numbered = add,
    .push_numbered = push,
    .add_in_group = add,
    .push_in_group = push,
    .add_stated_statements = add_stated_statements,
    .add_stated_reply = add_stated_reply,
    .add_stated_numbered_statements = add_stated_statements,
    .add_stated_numbered_reply = add_stated_reply,
    .add_stated_always_statements = add_stated_statements,
    .add_stated_always_reply = add_stated_reply,
    .add_grouped = add_grouped,
    .add_each = effects_on_each,
    .add_each_end = effects_on_each_end,
    .add_asked = add,
    .add_followed = effects_on_followed,
    .add_followed_messages = effects_on_followed_messages,
    .push = push,
    .push_always = push,
    .push_again = push,
    .push_step = push_step,
    .push_probe = push,
    .push_probe_probe = probe_push,
    .note = note,
    .count = count,
};
