#include "suite_call.h"

#include "arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WINDOW_MS INT64_C(86400000)

/* A clock that stands: mints keys of any time. */
struct still_clock {
    struct idem_clock clock;
    int64_t wall_ms;
};

static int64_t
still_wall_ms(const struct idem_clock *clock)
{
    return ((const struct still_clock *)clock)->wall_ms;
}

static void
still_random(const struct idem_clock *clock, void *bytes, size_t size)
{
    (void)clock;
    idem_clock_system()->random(idem_clock_system(), bytes, size);
}

void
suite_key_at(char *key, int64_t minted_ms, int64_t window_ms)
{
    struct still_clock still = {
        .clock = {.wall_ms = still_wall_ms, .random = still_random},
        .wall_ms = minted_ms,
    };

    idem_key_mint(key, &still.clock, window_ms);
}

void
suite_key(struct suite *suite, char *key)
{
    uint64_t nonce;

    if (suite->minted) {
        suite_key_at(key, suite->factory->wall_ms(suite->factory->with),
                     WINDOW_MS);
        return;
    }
    still_random(NULL, &nonce, sizeof nonce);
    snprintf(key, IDEM_KEY_MAX + 1, "order-%u-%016" PRIx64, ++suite->keys,
             nonce);
}

static void
answered(struct idem_ticket *ticket)
{
    struct suite_call *call = (struct suite_call *)ticket;

    pthread_mutex_lock(&call->lock);
    call->answered = true;
    pthread_cond_signal(&call->wake);
    pthread_mutex_unlock(&call->lock);
}

void
call_identify(struct suite_call *call)
{
    idem_record_id_digest(&call->ticket.id);
}

static bool
conclude(struct idem_ticket *ticket, const struct idem_rows *const *rows,
         const struct idem_error *failed)
{
    struct suite_call *call = (struct suite_call *)ticket;
    unsigned n = call->statements.n;

    call->concluded++;
    call->failed = failed ? failed->status : IDEM_OK;
    if (!failed && n > 0 && idem_rows_count(rows[n - 1]) > 0)
        call->number = idem_rows_int(rows[n - 1], 0, 0);
    ticket->answer = (struct idem_answer){
        .status = failed ? failed->status : call->says,
        .reply = idem_bytes_of(failed || call->says ? "" : "ran"),
    };
    return !call->released;
}

void
call_open(struct suite_call *call, struct suite *suite, const char *key,
          enum idem_mode mode, int request)
{
    struct idem_ticket *ticket = &call->ticket;

    memset(call, 0, sizeof *call);
    call->suite = suite;
    snprintf(call->key, sizeof call->key, "%s", key);
    assert_int_equal(
        idem_key_parse(&ticket->id.key, idem_bytes_of(call->key), NULL),
        IDEM_OK);
    ticket->id.tenant = idem_bytes_of("tenant");
    ticket->id.scope = "shop.v1.Shop/Buy";
    call_identify(call);
    memset(ticket->fingerprint.raw, request, 32);
    memset(ticket->fingerprint.canonical, request, 32);
    ticket->fingerprint.version = IDEM_FINGERPRINT_VERSION;
    ticket->mode = mode;
    ticket->after_crash = IDEM_AFTER_CRASH_REEXECUTE;
    ticket->lease_ms = suite->factory->lease_ms;
    ticket->deadline_ns = INT64_MAX;
    ticket->arena = arena_new(4096, 0);
    ticket->done = answered;
    statements_begin(&call->statements, ticket->arena);
    ticket->statements = &call->statements;
    ticket->conclude = conclude;
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->wake, NULL);
}

void
call_close(struct suite_call *call)
{
    pthread_cond_destroy(&call->wake);
    pthread_mutex_destroy(&call->lock);
    arena_free(call->ticket.arena);
}

void
call_start(struct suite_call *call, suite_op_fn *op)
{
    call->answered = false;
    op(call->suite->store, &call->ticket);
}

enum idem_verdict
call_await(struct suite_call *call)
{
    struct timespec until;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&call->lock);
    while (!call->answered && result == 0)
        result = pthread_cond_clockwait(&call->wake, &call->lock,
                                        CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&call->lock);
    if (result != 0)
        fail_msg("no answer from the store");
    return call->ticket.verdict;
}

enum idem_verdict
call_do(struct suite_call *call, suite_op_fn *op)
{
    call_start(call, op);
    return call_await(call);
}

void
call_add_effect(struct suite_call *call, int64_t amount)
{
    idem_statement_add(&call->statements,
                       "INSERT INTO effects (key, amount) VALUES ($1, $2)"
                       " RETURNING amount",
                       IDEM_VALUES(idem_text(call->key), idem_int(amount)));
}

enum idem_verdict
call_run(struct suite_call *call)
{
    return call_do(call, call->suite->store->ops->run);
}

enum idem_verdict
call_claim(struct suite_call *call)
{
    return call_do(call, call->suite->store->ops->claim);
}

enum idem_verdict
call_complete(struct suite_call *call, enum idem_status status,
              const char *reply)
{
    call->ticket.answer = (struct idem_answer){
        .status = status,
        .reply = idem_bytes_of(reply),
    };
    return call_do(call, call->suite->store->ops->complete);
}

enum idem_verdict
call_release(struct suite_call *call)
{
    return call_do(call, call->suite->store->ops->release);
}

enum idem_verdict
call_look(struct suite_call *call)
{
    return call_do(call, call->suite->store->ops->look);
}

enum idem_verdict
call_abandon(struct suite_call *call)
{
    return call_do(call, call->suite->store->ops->abandon);
}

enum idem_verdict
call_doubt(struct suite_call *call)
{
    return call_do(call, call->suite->store->ops->doubt);
}

enum idem_verdict
call_renew(struct suite_call *call)
{
    return call_do(call, call->suite->store->ops->renew);
}

enum idem_verdict
call_mark(struct suite_call *call, const char *step)
{
    call->ticket.step = step;
    return call_do(call, call->suite->store->ops->mark);
}

enum idem_verdict
suite_claim_once(struct suite *suite, const char *key, enum idem_mode mode,
                 int request)
{
    struct suite_call call;
    enum idem_verdict verdict;

    call_open(&call, suite, key, mode, request);
    verdict = call_claim(&call);
    if (verdict == IDEM_VERDICT_MINE)
        assert_int_equal(call_complete(&call, IDEM_OK, "done"),
                         IDEM_VERDICT_MINE);
    call_close(&call);
    return verdict;
}

enum idem_status
call_effect(struct suite_call *call, int64_t amount)
{
    return idem_sql(call->ticket.tx, NULL, NULL,
                    "INSERT INTO effects (key, amount) VALUES ($1, $2)",
                    IDEM_VALUES(idem_text(call->key), idem_int(amount)));
}

int64_t
suite_effects(struct suite *suite, const char *key)
{
    struct idem_arena *arena = arena_new(1024, 0);
    struct idem_error err = {0};
    struct idem_rows *rows = NULL;
    struct idem_tx *tx =
        suite->store->ops->begin_read(suite->store, arena, INT64_MAX, &err);
    int64_t count;

    if (!tx)
        fail_msg("begin_read: %s", err.message);
    assert_int_equal(idem_sql(tx, &rows, &err,
                              "SELECT count(*) FROM effects WHERE key = $1",
                              IDEM_VALUES(idem_text(key))),
                     IDEM_OK);
    count = idem_rows_int(rows, 0, 0);
    suite->store->ops->end_read(suite->store, tx);
    arena_free(arena);
    return count;
}

void
assert_text(struct idem_bytes bytes, const char *text)
{
    assert_int_equal(bytes.size, strlen(text));
    if (bytes.size > 0)
        assert_memory_equal(bytes.data, text, bytes.size);
}

void
suite_pass_lease(struct suite *suite)
{
    suite->factory->pass_ms(suite->factory->with, suite->factory->lease_ms + 1);
}
