#include "plan.h"

#include <stdio.h>
#include <stdlib.h>

#include <idem/key.h>

#include "dice.h"

#define WINDOW_MS 86400000
#define AMOUNT_MAX 500
#define PATIENCE_MS 1000
#define IMPATIENCE_MS 10

/* Of 20 calls one is to be refused, six are payouts. */
static enum plan_kind
choose_kind(struct dice *dice)
{
    int64_t chance = dice_between(dice, 1, 20);

    if (chance == 1)
        return PLAN_REFUSED;
    return chance <= 7 ? PLAN_PAYOUT : PLAN_CHARGE;
}

/* One click in four does not wait: it ends in doubt, and then asks again. */
static int64_t
choose_patience(struct dice *dice)
{
    return dice_between(dice, 1, 4) == 1 ? dice_between(dice, 1, IMPATIENCE_MS)
                                         : PATIENCE_MS;
}

static void
make_call(struct plan_call *call, unsigned number, struct dice *dice)
{
    call->kind = choose_kind(dice);
    call->account = (unsigned)dice_between(dice, 0, PLAN_ACCOUNTS - 1);
    call->amount = dice_between(dice, 1, AMOUNT_MAX);
    if (call->kind == PLAN_REFUSED)
        call->amount += PLAN_BALANCE;
    call->patience_ms = choose_patience(dice);
    idem_key_mint(call->key, idem_clock_system(), WINDOW_MS);
    snprintf(call->name, sizeof call->name, "call-%u", number);
}

struct plan
plan_make(const struct demo_options *options)
{
    struct plan plan = {
        .calls = calloc(options->calls, sizeof *plan.calls),
        .n_calls = options->calls,
    };
    struct dice dice = {options->seed};

    for (unsigned i = 0; plan.calls && i < plan.n_calls; i++)
        make_call(&plan.calls[i], i, &dice);
    return plan;
}

void
plan_free(struct plan *plan)
{
    free(plan->calls);
}
