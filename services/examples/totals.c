#include "totals.h"

#include "payments.idem.h"

#include <idem/context.h>

#include <stdatomic.h>

/* One call that is being answered; in its arena. */
struct sum {
    struct idem_context *context;
    totals_sum_reply *reply;
    atomic_uint left; /* calls, and one for the handler until it returns */
    atomic_llong total;
    atomic_bool failed;
};

/* Whoever is last answers; after that nothing of the call is there. */
static void
leave(struct sum *sum)
{
    struct idem_context *context = sum->context;
    enum idem_status status = IDEM_OK;

    if (atomic_fetch_sub(&sum->left, 1) > 1)
        return;
    sum->reply->total = atomic_load(&sum->total);
    if (atomic_load(&sum->failed))
        status = idem_context_fail(context, IDEM_UNAVAILABLE,
                                   "an account could not be read");
    idem_context_complete(context, status);
}

static void
add(struct idem_call *call, const payments_get_account_reply *account,
    const struct idem_outcome *outcome)
{
    struct sum *sum = idem_call_user(call);

    (void)outcome;
    if (account)
        atomic_fetch_add(&sum->total, account->balance);
    else
        atomic_store(&sum->failed, true);
    leave(sum);
}

/* Children of this call by themselves: they end by its deadline. */
static void
sum_accounts(struct idem_context *context, const totals_sum_request *request,
             totals_sum_reply *reply)
{
    struct idem_channel *payments = idem_context_user(context);
    struct sum *sum = idem_context_alloc(context, sizeof *sum);
    const struct idem_call_options options = {.user = sum};

    sum->context = context;
    sum->reply = reply;
    atomic_init(&sum->left, (unsigned)request->n_accounts + 1);
    for (size_t i = 0; i < request->n_accounts; i++) {
        payments_get_account_request ask = PAYMENTS_GET_ACCOUNT_REQUEST_INIT;

        ask.account = request->accounts[i];
        idem_call_release(
            payments_get_account_async(payments, &ask, &options, add));
    }
    leave(sum);
}

const struct totals_handlers totals_handlers_of_payments = {
    .sum = sum_accounts,
};
