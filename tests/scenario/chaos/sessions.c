#include "sessions.h"

#include "dice.h"
#include "effects.h"

#include <idem/key.h>
#include <idem/reason.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 20000 /* of a thread */
#define TRIES 60
#define TRY_MS 5000
#define LATE 4 /* of so many calls one is sent again later */

struct call {
    char key[IDEM_KEY_MAX + 1];
    int64_t amount;
    struct answer *answers;
};

struct answer {
    char reason[IDEM_REASON_MAX];
    struct checker_call told;
    struct answer *next;
};

/* A thread and what it alone has. */
struct caller {
    struct sessions *sessions;
    unsigned home; /* the server whose channel numbers its calls */
    struct dice dice;
    pthread_t thread;
    unsigned n, stale, answers;
    struct call *calls;
};

struct sessions {
    struct site *site;
    atomic_bool over; /* no more new ones */
    struct caller callers[SITE_SERVERS];
};

static void
keep(struct caller *caller, struct call *call, const struct checker_call *told)
{
    struct answer *answer = calloc(1, sizeof(*answer));

    assert_non_null(answer);
    answer->told = *told;
    snprintf(answer->reason, sizeof(answer->reason), "%s", told->reason);
    answer->next = call->answers;
    call->answers = answer;
    caller->answers++;
    caller->stale += strcmp(told->reason, IDEM_KEY_STALE) == 0;
}

/* True: what became of it is known. The first time its key is given it. */
static bool
ask(struct caller *caller, struct call *call, unsigned server,
    int64_t timeout_ms)
{
    const struct idem_clock *clock = idem_clock_system();
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    const struct idem_call_options options = {.key = call->key[0] ? call->key
                                                                  : NULL,
                                              .timeout_ms = timeout_ms,
                                              .wait_for_ready = true};
    struct checker_call told = {.began_ns = clock->monotonic_ns(clock)};
    effects_add_reply *reply = NULL;
    struct idem_outcome outcome;

    request.amount = call->amount;
    told.status =
        effects_add_numbered(caller->sessions->site->servers[server].channel,
                             &request, &reply, &options, &outcome);
    told.ended_ns = clock->monotonic_ns(clock);
    told.effect = outcome.effect;
    told.final = outcome.final;
    told.reason = outcome.reason;
    if (reply) {
        told.reply = (uint64_t)reply->number + 1;
        told.foreign = reply->amount != request.amount;
    }
    effects_add_reply_free(reply);
    snprintf(call->key, sizeof(call->key), "%s", outcome.key);
    keep(caller, call, &told);
    return outcome.final;
}

static void
ask_until_known(struct caller *caller, struct call *call, unsigned server)
{
    unsigned tries = 0;

    while (!ask(caller, call, server, TRY_MS) && ++tries < TRIES)
        continue;
}

static void *
work(void *with)
{
    struct caller *caller = with;
    struct dice *dice = &caller->dice;

    while (!atomic_load(&caller->sessions->over) && caller->n < CALLS_MAX) {
        struct call *call = &caller->calls[caller->n++];

        call->amount = caller->n;
        if (!ask(caller, call, caller->home, 50 + dice_roll(dice, 2000)))
            ask_until_known(caller, call, caller->home);
        if (dice_roll(dice, LATE) == 0)
            ask_until_known(caller, &caller->calls[dice_roll(dice, caller->n)],
                            dice_roll(dice, SITE_SERVERS));
    }
    return NULL;
}

struct sessions *
sessions_start(struct site *site, const struct chaos_options *options)
{
    struct sessions *sessions = calloc(1, sizeof(*sessions));

    assert_non_null(sessions);
    sessions->site = site;
    for (unsigned i = 0; i < SITE_SERVERS; i++) {
        struct caller *caller = &sessions->callers[i];

        caller->sessions = sessions;
        caller->home = i;
        caller->dice.state = dice_mix(options->seed + i);
        caller->calls = calloc(CALLS_MAX, sizeof(*caller->calls));
        assert_non_null(caller->calls);
        assert_int_equal(pthread_create(&caller->thread, NULL, work, caller),
                         0);
    }
    return sessions;
}

void
sessions_settle(struct sessions *sessions)
{
    atomic_store(&sessions->over, true);
    for (unsigned i = 0; i < SITE_SERVERS; i++)
        pthread_join(sessions->callers[i].thread, NULL);
}

static void
tell(struct call *call, struct checker *checker)
{
    if (call->key[0] == '\0') /* it had no number yet: nothing was sent */
        return;
    checker_key(checker, call->key, CHECKER_RUN_ONCE, INT64_MAX);
    checker_may_forget(checker, call->key);
    for (struct answer *answer = call->answers; answer; answer = answer->next) {
        answer->told.key = call->key;
        answer->told.reason = answer->reason;
        checker_call(checker, &answer->told);
    }
}

void
sessions_tell(struct sessions *sessions, struct checker *checker)
{
    for (unsigned i = 0; i < SITE_SERVERS; i++)
        for (unsigned n = 0; n < sessions->callers[i].n; n++)
            tell(&sessions->callers[i].calls[n], checker);
}

void
sessions_print(struct sessions *sessions)
{
    unsigned numbers = 0, answers = 0, stale = 0;

    for (unsigned i = 0; i < SITE_SERVERS; i++) {
        numbers += sessions->callers[i].n;
        answers += sessions->callers[i].answers;
        stale += sessions->callers[i].stale;
    }
    printf("%-28s %8u\n%-28s %8u\n%-28s %8u\n", "numbers of sessions", numbers,
           "… their calls", answers, "… late and turned away", stale);
}

void
sessions_free(struct sessions *sessions)
{
    for (unsigned i = 0; i < SITE_SERVERS; i++) {
        for (unsigned n = 0; n < sessions->callers[i].n; n++) {
            struct call *call = &sessions->callers[i].calls[n];

            while (call->answers) {
                struct answer *answer = call->answers;

                call->answers = answer->next;
                free(answer);
            }
        }
        free(sessions->callers[i].calls);
    }
    free(sessions);
}
