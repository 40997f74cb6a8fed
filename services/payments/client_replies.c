#include "client_replies.h"

#include <inttypes.h>
#include <stdio.h>

void
show_open_account(const payments_open_account_reply *reply)
{
    printf("balance   %" PRId64 "\n", reply->balance);
}

void
show_charge(const payments_charge_reply *reply)
{
    printf("balance   %" PRId64 "\nentry     %" PRId64 "\n", reply->balance,
           reply->entry);
}

void
show_transfer(const payments_transfer_reply *reply)
{
    printf("source    %" PRId64 "\ntarget    %" PRId64 "\n",
           reply->source_balance, reply->target_balance);
}

void
show_payout(const payments_payout_reply *reply)
{
    printf("reference %s\n", reply->reference);
}
