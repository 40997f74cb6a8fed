#include "support.h"

#include "arena.h"
#include "child.h"
#include "shield_world.h"

#include <idem/digest.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE_MS 20000
#define NOBODY 1000000 /* a record that no test fills */

/* A passage of text that names the record. */
struct record {
    struct idem_answer answer;
    char reply[64], message[64];
};

static void
write_record(struct record *record, unsigned number)
{
    snprintf(record->reply, sizeof(record->reply), "reply of %u", number);
    snprintf(record->message, sizeof(record->message), "message of %u", number);
    record->answer = (struct idem_answer){
        .status = number % 2 ? IDEM_OK : IDEM_NOT_FOUND,
        .message = idem_bytes_of(record->message),
        .reason = idem_bytes_of("REASON"),
        .reply = idem_bytes_of(number % 2 ? record->reply : ""),
        .first_at_ms = 1700000000000 + number,
        .executions = 1 + number,
    };
}

static void
write_id(struct shield_asked *asked, unsigned number)
{
    snprintf(asked->key, sizeof(asked->key), "key-%u", number);
    asked->number = number;
    asked->id = (struct idem_record_id){
        .key = {.text = idem_bytes_of(asked->key)},
        .tenant = idem_bytes_of("tenant"),
        .scope = "test.v1.Test/Call",
    };
    idem_sha256_of(asked->id.key.text, asked->id.digest);
    idem_sha256_of(asked->id.key.text, asked->fingerprint.raw);
    idem_sha256_of(asked->id.key.text, asked->fingerprint.canonical);
    asked->fingerprint.version = IDEM_FINGERPRINT_VERSION;
}

static void
note_done(struct idem_shield_look *look)
{
    struct shield_asked *asked = (struct shield_asked *)look;

    pthread_mutex_lock(&asked->lock);
    asked->done++;
    pthread_cond_signal(&asked->changed);
    pthread_mutex_unlock(&asked->lock);
}

static void
check_answer(const struct shield_asked *asked)
{
    const struct idem_answer *answer = &asked->look.answer;
    struct record record;

    write_record(&record, asked->number);
    assert_int_equal(answer->status, record.answer.status);
    assert_int_equal(answer->first_at_ms, record.answer.first_at_ms);
    assert_int_equal(answer->executions, record.answer.executions);
    assert_true(idem_bytes_equal(answer->reply, record.answer.reply));
    assert_true(idem_bytes_equal(answer->message, record.answer.message));
    assert_true(idem_bytes_equal(answer->reason, record.answer.reason));
    assert_int_equal(answer->trailers.size, 0);
}

static void
prepare(struct shield_asked *asked, unsigned number)
{
    memset(asked, 0, sizeof(*asked));
    write_id(asked, number);
    asked->arena = arena_new(512, 0);
    pthread_mutex_init(&asked->lock, NULL);
    pthread_cond_init(&asked->changed, NULL);
    asked->look.id = &asked->id;
    asked->look.fingerprint = &asked->fingerprint;
    asked->look.arena = asked->arena;
    asked->look.done = note_done;
}

struct idem_shield *
shield_open_with(struct idem_redis_options options)
{
    struct idem_shield *shield;

    options.secret = idem_bytes_of("a secret of tests");
    if (!options.budget_ms)
        options.budget_ms = 5000;
    if (!options.epoch)
        options.epoch = "7:1:1";
    assert_int_equal(idem_redis_new(&shield, &options, NULL), IDEM_OK);
    return shield;
}

struct idem_shield *
shield_open(const char *url)
{
    return shield_open_with((struct idem_redis_options){.url = url});
}

void
shield_ask_begin(struct idem_shield *shield, struct shield_asked *asked,
                 unsigned number)
{
    prepare(asked, number);
    idem_shield_look(shield, &asked->look);
}

enum idem_verdict
shield_ask_end(struct shield_asked *asked)
{
    struct timespec until;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    pthread_mutex_lock(&asked->lock);
    while (!asked->done && result == 0)
        result = pthread_cond_clockwait(&asked->changed, &asked->lock,
                                        CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&asked->lock);
    assert_int_equal(asked->done, 1);
    if (asked->look.verdict == IDEM_VERDICT_DONE)
        check_answer(asked);
    pthread_cond_destroy(&asked->changed);
    pthread_mutex_destroy(&asked->lock);
    arena_free(asked->arena);
    return asked->look.verdict;
}

enum idem_verdict
shield_ask(struct idem_shield *shield, unsigned number)
{
    struct shield_asked asked;

    shield_ask_begin(shield, &asked, number);
    return shield_ask_end(&asked);
}

enum idem_verdict
shield_ask_otherwise(struct idem_shield *shield, unsigned number)
{
    struct shield_asked asked;

    prepare(&asked, number);
    asked.fingerprint.raw[0] ^= 1;
    asked.fingerprint.canonical[0] ^= 1;
    idem_shield_look(shield, &asked.look);
    return shield_ask_end(&asked);
}

struct idem_shield_counts
shield_counts(const struct idem_shield *shield)
{
    struct idem_shield_counts counts;

    idem_shield_counts(shield, &counts);
    return counts;
}

static bool
is_connected(void *shield)
{
    uint64_t before = shield_counts(shield).skipped;

    shield_ask(shield, NOBODY);
    return shield_counts(shield).skipped == before;
}

void
shield_await_connected(struct idem_shield *shield)
{
    assert_true(child_wait_until(is_connected, shield, PATIENCE_MS));
}

struct idem_shield *
shield_open_connected(struct idem_redis_options options)
{
    struct idem_shield *shield = shield_open_with(options);

    shield_await_connected(shield);
    return shield;
}

void
shield_learn(struct idem_shield *shield, unsigned number)
{
    struct shield_asked asked;
    struct record record;

    write_id(&asked, number);
    write_record(&record, number);
    idem_shield_fill(shield, &asked.id, &asked.fingerprint, &record.answer,
                     INT64_MAX / 2);
}

void
shield_learn_for_sure(struct idem_shield *shield, unsigned number)
{
    uint64_t before = shield_counts(shield).fills;

    shield_learn(shield, number);
    /* Replies come in order, and the second look is sent after the fill. */
    shield_ask(shield, NOBODY);
    shield_ask(shield, NOBODY);
    assert_true(shield_counts(shield).fills > before);
}
