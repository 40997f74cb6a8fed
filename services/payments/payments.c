/* Call the payments service from a shell. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <idem/standard.h>
#include <idem/token.h>

#include "client_key.h"
#include "client_options.h"
#include "client_replies.h"

#define EXIT_USAGE 64

/* One call: what it is asked with, and how it ended. */
struct errand {
    struct idem_channel *channel;
    const struct client_options *options;
    struct idem_call_options call;
    struct idem_outcome outcome;
};

static void
open_account(struct errand *errand)
{
    payments_open_account_request request = PAYMENTS_OPEN_ACCOUNT_REQUEST_INIT;
    payments_open_account_reply *reply;

    request.account = errand->options->account;
    request.balance = errand->options->amount;
    if (payments_open_account(errand->channel, &request, &reply, &errand->call,
                              &errand->outcome) != IDEM_OK)
        return;
    show_open_account(reply);
    payments_open_account_reply_free(reply);
}

static void
charge(struct errand *errand)
{
    payments_charge_request request = PAYMENTS_CHARGE_REQUEST_INIT;
    payments_charge_reply *reply;

    request.account = errand->options->account;
    request.amount = errand->options->amount;
    request.order_id = errand->options->order;
    request.memo = errand->options->memo;
    if (payments_charge(errand->channel, &request, &reply, &errand->call,
                        &errand->outcome) != IDEM_OK)
        return;
    show_charge(reply);
    payments_charge_reply_free(reply);
}

static void
transfer(struct errand *errand)
{
    payments_transfer_request request = PAYMENTS_TRANSFER_REQUEST_INIT;
    payments_transfer_reply *reply;

    request.source = errand->options->account;
    request.target = errand->options->target;
    request.amount = errand->options->amount;
    request.memo = errand->options->memo;
    if (payments_transfer(errand->channel, &request, &reply, &errand->call,
                          &errand->outcome) != IDEM_OK)
        return;
    show_transfer(reply);
    payments_transfer_reply_free(reply);
}

static void
payout(struct errand *errand)
{
    payments_payout_request request = PAYMENTS_PAYOUT_REQUEST_INIT;
    payments_payout_reply *reply;

    request.destination = errand->options->target;
    request.amount = errand->options->amount;
    if (payments_payout(errand->channel, &request, &reply, &errand->call,
                        &errand->outcome) != IDEM_OK)
        return;
    show_payout(reply);
    payments_payout_reply_free(reply);
}

static void
account(struct errand *errand)
{
    payments_get_account_request request = PAYMENTS_GET_ACCOUNT_REQUEST_INIT;
    payments_get_account_reply *reply;

    request.account = errand->options->account;
    if (payments_get_account(errand->channel, &request, &reply, &errand->call,
                             &errand->outcome) != IDEM_OK)
        return;
    printf("balance   %" PRId64 "\nentries   %" PRId64 "\n", reply->balance,
           reply->entries);
    payments_get_account_reply_free(reply);
}

static void
entries(struct errand *errand)
{
    payments_list_entries_request request = PAYMENTS_LIST_ENTRIES_REQUEST_INIT;
    payments_list_entries_reply *reply;

    request.account = errand->options->account;
    request.after = errand->options->after;
    request.limit = (uint32_t)errand->options->limit;
    if (payments_list_entries(errand->channel, &request, &reply, &errand->call,
                              &errand->outcome) != IDEM_OK)
        return;
    for (size_t i = 0; i < reply->n_entries; i++) {
        const payments_entry *entry = reply->entries[i];

        printf("%-9" PRId64 " %12" PRId64 "  %s %s\n", entry->number,
               entry->amount, entry->order_id, entry->memo);
    }
    payments_list_entries_reply_free(reply);
}

static void
totals(struct errand *errand)
{
    payments_get_totals_request request = PAYMENTS_GET_TOTALS_REQUEST_INIT;
    payments_get_totals_reply *reply;

    if (payments_get_totals(errand->channel, &request, &reply, &errand->call,
                            &errand->outcome) != IDEM_OK)
        return;
    printf("accounts  %" PRId64 "\nbalance   %" PRId64 "\nentries   %" PRId64
           "\n",
           reply->accounts, reply->balance, reply->entries);
    payments_get_totals_reply_free(reply);
}

static const struct {
    const char *name;
    void (*run)(struct errand *errand);
} commands[] = {
    {"open", open_account}, {"charge", charge},   {"transfer", transfer},
    {"payout", payout},     {"account", account}, {"entries", entries},
    {"totals", totals},
};

static void
say_outcome(const struct idem_outcome *outcome)
{
    bool replayed = outcome->effect == IDEM_EFFECT_REPLAYED;

    printf("status    %s\neffect    %s\nreplayed  %s\nfinal     %s\n",
           idem_status_name(outcome->status), idem_effect_name(outcome->effect),
           replayed ? "yes" : "no", outcome->final ? "yes" : "no");
    if (outcome->key[0])
        printf("key       %s\n", outcome->key);
    if (outcome->reason[0])
        printf("reason    %s\n", outcome->reason);
    if (outcome->message[0])
        printf("message   %s\n", outcome->message);
}

/* The exit code. */
static int
call(struct idem_channel *channel, const struct client_options *options,
     void (*command)(struct errand *))
{
    struct errand errand = {
        .channel = channel,
        .options = options,
        .call = {.key = options->key, .timeout_ms = options->timeout_ms},
    };

    command(&errand);
    say_outcome(&errand.outcome);
    return (int)errand.outcome.status;
}

/* As above. NULL: a command about a key. */
static int
run(const struct client_options *options, void (*command)(struct errand *))
{
    const struct idem_token_options token = {.file = options->token};
    const struct idem_channel_options with = {.token = options->token ? &token
                                                                      : NULL};
    struct idem_channel *channel;
    struct idem_error err;
    int code;

    if (idem_client_open(&channel, options->server, &with, &err) != IDEM_OK) {
        fprintf(stderr, "payments: %s\n", err.message);
        return EXIT_USAGE;
    }
    code = command ? call(channel, options, command)
                   : client_key_run(channel, options);
    idem_channel_close(channel);
    return code;
}

int
main(int argc, char **argv)
{
    struct client_options options;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(client_usage, stdout);
        return 0;
    }
    if (!client_options_parse(&options, argc, argv))
        return EXIT_USAGE;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(options.command, commands[i].name) == 0)
            return run(&options, commands[i].run);
    }
    if (client_key_has(options.command))
        return run(&options, NULL);
    fprintf(stderr, "payments: no command \"%s\" (--help tells more)\n",
            options.command);
    return EXIT_USAGE;
}
