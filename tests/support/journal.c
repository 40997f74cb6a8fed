#include "journal.h"

#include <idem/key.h>
#include <idem/tx.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WAIT_S 10

void
journal_init(struct journal *journal, const char *push_log)
{
    *journal = (struct journal){.push_log = push_log};
    pthread_mutex_init(&journal->lock, NULL);
    pthread_cond_init(&journal->changed, NULL);
}

void
journal_fini(struct journal *journal)
{
    pthread_cond_destroy(&journal->changed);
    pthread_mutex_destroy(&journal->lock);
}

/* --- The test's hand --- */

void
journal_fail(struct journal *journal, unsigned times, enum idem_status status)
{
    pthread_mutex_lock(&journal->lock);
    journal->left_failing = times;
    journal->fail_with = status;
    pthread_mutex_unlock(&journal->lock);
}

static void
set_held(struct journal *journal, bool held)
{
    pthread_mutex_lock(&journal->lock);
    journal->held = held;
    pthread_cond_broadcast(&journal->changed);
    pthread_mutex_unlock(&journal->lock);
}

void
journal_hold(struct journal *journal)
{
    set_held(journal, true);
}

void
journal_open(struct journal *journal)
{
    set_held(journal, false);
}

static void
await(struct journal *journal, const unsigned *what, unsigned wanted)
{
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += WAIT_S;
    pthread_mutex_lock(&journal->lock);
    while (*what < wanted && rc == 0)
        rc = pthread_cond_timedwait(&journal->changed, &journal->lock, &end);
    if (*what < wanted) {
        fprintf(stderr, "journal: %u, and %u are waited for\n", *what, wanted);
        abort();
    }
    pthread_mutex_unlock(&journal->lock);
}

void
journal_await_inside(struct journal *journal, unsigned inside)
{
    await(journal, &journal->inside, inside);
}

void
journal_await_runs(struct journal *journal, unsigned runs)
{
    await(journal, &journal->runs, runs);
}

unsigned
journal_runs(struct journal *journal)
{
    unsigned runs;

    pthread_mutex_lock(&journal->lock);
    runs = journal->runs;
    pthread_mutex_unlock(&journal->lock);
    return runs;
}

/* --- Handlers --- */

/* What the test, or the entry, wants to be said. */
static enum idem_status
leave_message(struct idem_context *context, uint32_t wanted)
{
    struct journal *journal = idem_context_user(context);
    enum idem_status status = (enum idem_status)wanted;

    pthread_mutex_lock(&journal->lock);
    journal->inside++;
    pthread_cond_broadcast(&journal->changed);
    while (journal->held)
        pthread_cond_wait(&journal->changed, &journal->lock);
    journal->inside--;
    if (journal->left_failing > 0) {
        journal->left_failing--;
        status = journal->fail_with;
    }
    journal->runs++;
    pthread_cond_broadcast(&journal->changed);
    pthread_mutex_unlock(&journal->lock);
    if (status != IDEM_OK)
        return idem_context_fail(context, status, "as it was asked to");
    return IDEM_OK;
}

static const char *
session_of(struct idem_context *context)
{
    char session[IDEM_SESSION_MAX];
    int64_t number;

    if (!idem_session_split(idem_bytes_of(idem_context_key(context)), session,
                            &number))
        return "none";
    return idem_context_printf(context, "%s", session);
}

static const char *
new_word(struct idem_context *context)
{
    const struct idem_clock *clock = idem_clock_system();
    uint64_t number;

    clock->random(clock, &number, sizeof number);
    return idem_context_printf(context, "%llx", (unsigned long long)number);
}

static enum idem_status
insert(struct idem_context *context, int64_t number, const char *word)
{
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);

    if (!tx ||
        idem_sql(tx, NULL, &err,
                 "INSERT INTO journal (key, session, number, word) "
                 "VALUES ($1, $2, $3, $4)",
                 IDEM_VALUES(idem_text(idem_context_key(context)),
                             idem_text(session_of(context)), idem_int(number),
                             idem_text(word))) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    return IDEM_OK;
}

static enum idem_status
count(struct idem_context *context, int64_t *entries)
{
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);
    struct idem_rows *rows;

    if (!tx || idem_sql(tx, &rows, &err,
                        "SELECT count(*) FROM journal WHERE session = $1",
                        IDEM_VALUES(idem_text(session_of(context)))) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    *entries = idem_rows_int(rows, 0, 0);
    return IDEM_OK;
}

static enum idem_status
write_entry(struct idem_context *context, const journal_entry *entry)
{
    enum idem_status status = insert(context, entry->number, "");

    return status == IDEM_OK ? leave_message(context, entry->status) : status;
}

static enum idem_status
write_end(struct idem_context *context, journal_receipt *receipt)
{
    enum idem_status status = count(context, &receipt->entries);

    receipt->word = (char *)(uintptr_t)new_word(context);
    return status == IDEM_OK ? insert(context, 0, receipt->word) : status;
}

/* One write, so that lines of two processes do not mix. */
static enum idem_status
append_line(struct idem_context *context, int64_t number)
{
    const struct journal *journal = idem_context_user(context);
    FILE *file = journal->push_log ? fopen(journal->push_log, "a") : NULL;

    if (!file)
        return idem_context_fail(context, IDEM_FAILED_PRECONDITION, "no file");
    fprintf(file, "%s %lld\n", idem_context_key(context), (long long)number);
    fclose(file);
    return IDEM_OK;
}

static enum idem_status
push_entry(struct idem_context *context, const journal_entry *entry)
{
    enum idem_status status = append_line(context, entry->number);

    return status == IDEM_OK ? leave_message(context, entry->status) : status;
}

static enum idem_status
push_end(struct idem_context *context, journal_receipt *receipt)
{
    receipt->word = (char *)(uintptr_t)new_word(context);
    return append_line(context, 0);
}

static enum idem_status
ask(struct idem_context *context, const journal_entry *entry,
    journal_answer *answer)
{
    enum idem_status status;

    answer->number = entry->number;
    answer->word = (char *)(uintptr_t)new_word(context);
    status = insert(context, entry->number, answer->word);
    return status == IDEM_OK ? leave_message(context, entry->status) : status;
}

const struct journal_handlers journal_handlers = {
    .write = write_entry,
    .write_end = write_end,
    .push = push_entry,
    .push_end = push_end,
    .ask = ask,
};
