#include "ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <idem/channel.h>

#include "payments.idem.h"

#define GIVE_UP_NS 45000000000
#define PAUSE_MS 50

static void
ask_charge(struct idem_channel *channel, const struct plan_call *call,
           const struct idem_call_options *options,
           struct idem_outcome *outcome, struct answer *answer)
{
    payments_charge_request request = PAYMENTS_CHARGE_REQUEST_INIT;
    payments_charge_reply *reply;
    char account[32];

    snprintf(account, sizeof account, "account-%u", call->account);
    request.account = account;
    request.amount = call->amount;
    request.memo = call->name;
    if (payments_charge(channel, &request, &reply, options, outcome) != IDEM_OK)
        return;
    snprintf(answer->text, sizeof answer->text,
             "balance %" PRId64 " entry %" PRId64, reply->balance,
             reply->entry);
    payments_charge_reply_free(reply);
}

static void
ask_payout(struct idem_channel *channel, const struct plan_call *call,
           const struct idem_call_options *options,
           struct idem_outcome *outcome, struct answer *answer)
{
    payments_payout_request request = PAYMENTS_PAYOUT_REQUEST_INIT;
    payments_payout_reply *reply;

    request.destination = call->name;
    request.amount = call->amount;
    if (payments_payout(channel, &request, &reply, options, outcome) != IDEM_OK)
        return;
    snprintf(answer->text, sizeof answer->text, "%s", reply->reference);
    payments_payout_reply_free(reply);
}

static void
ask_once(struct idem_channel *channel, const struct plan_call *call,
         int64_t patience_ms, struct tally *tally, struct answer *answer)
{
    const struct idem_call_options options = {
        .timeout_ms = patience_ms,
        .key = call->key,
        .wait_for_ready = true,
    };
    struct idem_outcome outcome;

    *answer = (struct answer){0};
    if (call->kind == PLAN_PAYOUT)
        ask_payout(channel, call, &options, &outcome, answer);
    else
        ask_charge(channel, call, &options, &outcome, answer);
    answer->final = outcome.final;
    answer->status = outcome.status;
    answer->effect = outcome.effect;
    tally_asked(tally, &outcome);
}

static void
pause_a_little(void)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};

    nanosleep(&pause, NULL);
}

bool
ask_until_final(struct idem_channel *channel, const struct plan_call *call,
                int64_t patience_ms, struct tally *tally, struct answer *answer)
{
    const struct idem_clock *clock = idem_clock_system();
    int64_t end_ns = clock->monotonic_ns(clock) + GIVE_UP_NS;
    unsigned doubts = 0;

    for (;;) {
        ask_once(channel, call, patience_ms, tally, answer);
        patience_ms = ASK_PATIENCE_MS;
        if (answer->final)
            break;
        doubts += answer->effect == IDEM_EFFECT_IN_DOUBT;
        if (clock->monotonic_ns(clock) > end_ns)
            return false;
        pause_a_little();
    }
    for (; doubts > 0; doubts--)
        tally_resolved(tally, answer->effect);
    return true;
}

bool
answers_agree(const struct answer *a, const struct answer *b)
{
    return a->final == b->final && a->status == b->status &&
           strcmp(a->text, b->text) == 0;
}
