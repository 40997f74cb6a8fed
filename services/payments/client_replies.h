#ifndef PAYMENTS_CLIENT_REPLIES_H
#define PAYMENTS_CLIENT_REPLIES_H

#include "payments.idem.h"

/* What a shell sees of the replies. */
void show_open_account(const payments_open_account_reply *reply);
void show_charge(const payments_charge_reply *reply);
void show_transfer(const payments_transfer_reply *reply);
void show_payout(const payments_payout_reply *reply);

#endif
