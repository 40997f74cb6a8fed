#include "checker.h"

#include <idem/base.h>
#include <idem/reason.h>
#include <idem/session.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#define STATE_MAX 16

struct call {
    struct checker_call told;
    char reason[IDEM_REASON_MAX];
    struct call *next;
};

struct key {
    char name[IDEM_KEY_MAX + 1];
    enum checker_runs runs;
    int64_t window_end_ms;
    struct call *calls;
    unsigned effects, late_effects;
    bool recorded;
    bool may_be_forgotten; /* and then nothing is recorded */
    char state[STATE_MAX];
    struct checker_record record;
    UT_hash_handle hh;
};

struct checker {
    struct key *keys; /* by name */
    bool others;      /* there may be, which nobody declares */
    unsigned endless; /* cached without an end */
    char endless_name[IDEM_KEY_MAX + 1];
    checker_tell_fn *tell;
    void *with;
    unsigned violations;
};

struct checker *
checker_new(void)
{
    struct checker *checker = calloc(1, sizeof(*checker));

    IDEM_ASSERT(checker);
    return checker;
}

void
checker_free(struct checker *checker)
{
    struct key *key, *next;

    if (!checker)
        return;
    HASH_ITER (hh, checker->keys, key, next) {
        while (key->calls) {
            struct call *call = key->calls;

            key->calls = call->next;
            free(call);
        }
        HASH_DEL(checker->keys, key);
        free(key);
    }
    free(checker);
}

/* NULL: it is another's. */
static struct key *
find(struct checker *checker, const char *name)
{
    struct key *key;

    HASH_FIND_STR(checker->keys, name, key);
    if (!key && checker->others)
        return NULL;
    if (!key)
        fprintf(stderr, "checker: key %s was not declared\n", name);
    IDEM_ASSERT(key);
    return key;
}

/* --- Facts --- */

void
checker_key(struct checker *checker, const char *name, enum checker_runs runs,
            int64_t window_end_ms)
{
    struct key *key;

    HASH_FIND_STR(checker->keys, name, key);
    if (key)
        return;
    key = calloc(1, sizeof(*key));
    IDEM_ASSERT(key && strlen(name) <= IDEM_KEY_MAX);
    strcpy(key->name, name);
    key->runs = runs;
    key->window_end_ms = window_end_ms;
    HASH_ADD_STR(checker->keys, name, key);
}

void
checker_pass_over_others(struct checker *checker)
{
    checker->others = true;
}

void
checker_may_forget(struct checker *checker, const char *name)
{
    struct key *key = find(checker, name);

    if (key)
        key->may_be_forgotten = true;
}

void
checker_call(struct checker *checker, const struct checker_call *told)
{
    struct key *key = find(checker, told->key);
    struct call *call;

    if (!key)
        return;
    call = calloc(1, sizeof(*call));
    IDEM_ASSERT(call);
    call->told = *told;
    call->told.key = key->name;
    snprintf(call->reason, sizeof(call->reason), "%s", told->reason);
    call->told.reason = call->reason;
    call->next = key->calls;
    key->calls = call;
}

void
checker_session(struct checker *checker, const char *session,
                enum checker_runs runs, int64_t n, int64_t told)
{
    char key[IDEM_KEY_MAX + 1];
    const struct checker_call ok = {.key = key,
                                    .effect = IDEM_EFFECT_COMMITTED,
                                    .final = true,
                                    .reason = ""};

    for (int64_t number = 1; number <= n; number++) {
        idem_key_of_session(key, session, number);
        checker_key(checker, key, runs, INT64_MAX);
        checker_may_forget(checker, key);
        if (number <= told)
            checker_call(checker, &ok);
    }
}

void
checker_record(struct checker *checker, const struct checker_record *record)
{
    struct key *key = find(checker, record->key);

    if (!key)
        return;
    key->recorded = true;
    key->record = *record;
    snprintf(key->state, sizeof(key->state), "%s", record->state);
}

void
checker_effect(struct checker *checker, const char *name, int64_t at_ms)
{
    struct key *key = find(checker, name);

    if (!key)
        return;
    key->effects++;
    key->late_effects += at_ms >= key->window_end_ms ? 1 : 0;
}

void
checker_cached(struct checker *checker, const char *name, int64_t ttl_ms)
{
    if (ttl_ms >= 0)
        return;
    checker->endless++;
    snprintf(checker->endless_name, sizeof(checker->endless_name), "%s", name);
}

/* --- Rules --- */

static void
tell(struct checker *checker, unsigned rule, const char *key, const char *what)
{
    checker->violations++;
    checker->tell(checker->with, rule, key, what);
}

static bool
is_state(const struct key *key, const char *state)
{
    return key->recorded && strcmp(key->state, state) == 0;
}

static const struct call *
first_final(const struct key *key)
{
    const struct call *first = NULL;

    for (const struct call *call = key->calls; call; call = call->next)
        if (call->told.final &&
            (!first || call->told.ended_ns < first->told.ended_ns))
            first = call;
    return first;
}

/* Final for the request that got them, and nothing of the key's own. */
static bool
is_of_the_key(const struct call *call)
{
    return strcmp(call->told.reason, IDEM_KEY_REUSED) != 0 &&
           strcmp(call->told.reason, IDEM_KEY_STALE) != 0;
}

/* Its sender had its answer. */
static bool
is_forgotten(const struct key *key)
{
    return key->may_be_forgotten && !key->recorded && first_final(key);
}

static void
check_effects(struct checker *checker, const struct key *key)
{
    unsigned granted = key->recorded ? key->record.executions : 0;

    if (key->runs == CHECKER_RUN_ONCE && key->effects > 1)
        tell(checker, 1, key->name, "more than one effect");
    if (key->runs == CHECKER_RUN_AGAIN && key->effects > granted &&
        !is_forgotten(key))
        tell(checker, 1, key->name, "more effects than executions");
    if (key->effects > 0 && granted == 0 && !is_forgotten(key))
        tell(checker, 8, key->name, "an effect that no claim let through");
    if (key->late_effects > 0)
        tell(checker, 7, key->name, "an effect after the key's window");
}

static void
check_final_pair(struct checker *checker, const struct key *key,
                 const struct call *first, const struct call *call)
{
    if (call->told.status != first->told.status ||
        strcmp(call->reason, first->reason) != 0)
        tell(checker, 2, key->name, "two final answers");
    else if (call->told.reply != first->told.reply)
        tell(checker, 4, key->name, "a replay of other bytes");
}

static void
check_finals(struct checker *checker, const struct key *key)
{
    const struct call *first = first_final(key);

    for (const struct call *call = key->calls; first && call;
         call = call->next) {
        if (call->told.final && is_of_the_key(call) && is_of_the_key(first))
            check_final_pair(checker, key, first, call);
        else if (call->told.began_ns > first->told.ended_ns &&
                 strcmp(call->reason, IDEM_KEY_IN_DOUBT) == 0)
            tell(checker, 2, key->name, "in doubt after a final answer");
    }
}

static void
check_words(struct checker *checker, const struct key *key)
{
    for (const struct call *call = key->calls; call; call = call->next) {
        bool ok = call->told.status == IDEM_OK;

        if (call->told.foreign)
            tell(checker, 6, key->name, "another call's answer");
        if (!call->told.final || !is_of_the_key(call))
            continue;
        if (!ok && key->runs == CHECKER_RUN_ONCE && key->effects > 0)
            tell(checker, 3, key->name, "an effect and a final no");
        if (ok && key->effects == 0)
            tell(checker, 10, key->name, "a final yes without an effect");
        if (ok && !is_state(key, "DONE") && !is_forgotten(key))
            tell(checker, 10, key->name, "a final yes without its record");
    }
}

static const struct call *
last_call(const struct key *key)
{
    const struct call *last = NULL;

    for (const struct call *call = key->calls; call; call = call->next)
        if (!last || call->told.began_ns > last->told.began_ns)
            last = call;
    return last;
}

static void
check_end(struct checker *checker, const struct key *key,
          int64_t longest_lease_ms)
{
    const struct call *last = last_call(key);

    if (is_state(key, "RUNNING") &&
        key->record.lease_left_ms > longest_lease_ms)
        tell(checker, 5, key->name, "a lease longer than any may be");
    if (last && !last->told.final &&
        strcmp(last->reason, IDEM_KEY_IN_DOUBT) != 0)
        tell(checker, 5, key->name, "its last call was not told what became");
}

unsigned
checker_run(struct checker *checker, int64_t longest_lease_ms,
            checker_tell_fn *tell_fn, void *with)
{
    struct key *key, *next;

    checker->tell = tell_fn;
    checker->with = with;
    checker->violations = 0;
    HASH_ITER (hh, checker->keys, key, next) {
        check_effects(checker, key);
        check_finals(checker, key);
        check_words(checker, key);
        check_end(checker, key, longest_lease_ms);
    }
    if (checker->endless > 0)
        tell(checker, 9, checker->endless_name, "cached without an end");
    return checker->violations;
}

void
checker_print(void *with, unsigned rule, const char *key, const char *what)
{
    (void)with;
    fprintf(stderr, "I%u broken: key %s: %s\n", rule, key, what);
}
