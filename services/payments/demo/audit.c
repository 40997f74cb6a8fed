#include "audit.h"

#include <stdio.h>
#include <stdlib.h>

#include <idem/standard.h>

#include "payments.idem.h"
#include "provider_log.h"

#define PAGE 1000

/* An audit at work. */
struct auditor {
    struct audit *audit;
    const struct plan *plan;
    struct idem_channel *channel;
    unsigned *effects; /* of each call */
};

/* An effect was found that carries this name. */
static void
note_effect(struct auditor *auditor, const char *name)
{
    unsigned number;

    if (sscanf(name, "call-%u", &number) == 1 &&
        number < auditor->plan->n_calls)
        auditor->effects[number]++;
}

static bool
complain(const char *account, const struct idem_outcome *outcome)
{
    fprintf(stderr, "demo: %s cannot be read: %s: %s\n", account,
            idem_status_name(outcome->status), outcome->message);
    return false;
}

static bool
read_balance(struct auditor *auditor, const char *account)
{
    payments_get_account_request request = PAYMENTS_GET_ACCOUNT_REQUEST_INIT;
    payments_get_account_reply *reply;
    struct idem_outcome outcome;

    request.account = account;
    if (payments_get_account(auditor->channel, &request, &reply, NULL,
                             &outcome) != IDEM_OK)
        return complain(account, &outcome);
    auditor->audit->accounts.found += PLAN_BALANCE - reply->balance;
    payments_get_account_reply_free(reply);
    return true;
}

/* One page of entries behind *after, which moves on; 0: there are no more. */
static bool
read_page(struct auditor *auditor, const char *account, int64_t *after)
{
    payments_list_entries_request request = PAYMENTS_LIST_ENTRIES_REQUEST_INIT;
    payments_list_entries_reply *reply;
    struct idem_outcome outcome;

    request.account = account;
    request.after = *after;
    request.limit = PAGE;
    if (payments_list_entries(auditor->channel, &request, &reply, NULL,
                              &outcome) != IDEM_OK)
        return complain(account, &outcome);
    *after = 0;
    for (size_t i = 0; i < reply->n_entries; i++) {
        auditor->audit->entries.found -= reply->entries[i]->amount;
        note_effect(auditor, reply->entries[i]->memo);
        *after = reply->entries[i]->number;
    }
    payments_list_entries_reply_free(reply);
    return true;
}

static bool
read_account(struct auditor *auditor, unsigned number)
{
    char account[32];
    int64_t after = 0;

    snprintf(account, sizeof account, "account-%u", number);
    if (!read_balance(auditor, account))
        return false;
    do {
        if (!read_page(auditor, account, &after))
            return false;
    } while (after > 0);
    return true;
}

static bool
read_provider(struct auditor *auditor, const char *path)
{
    char line[3 * PAYMENT_WORD_MAX];
    struct payment payment;
    FILE *file = fopen(path, "re");

    if (!file) {
        perror("demo: the provider's log");
        return false;
    }
    while (fgets(line, sizeof line, file)) {
        if (!payment_parse(&payment, line))
            continue;
        auditor->audit->provider.found += payment.amount;
        note_effect(auditor, payment.destination);
    }
    fclose(file);
    return true;
}

static bool
read_all(struct auditor *auditor, const char *server, const char *log)
{
    struct idem_error err;
    bool read;

    if (idem_client_open(&auditor->channel, server, NULL, &err) != IDEM_OK) {
        fprintf(stderr, "demo: %s: %s\n", server, err.message);
        return false;
    }
    read = read_provider(auditor, log);
    for (unsigned i = 0; read && i < PLAN_ACCOUNTS; i++)
        read = read_account(auditor, i);
    idem_channel_close(auditor->channel);
    return read;
}

/* What the clients were told about a call, against what it left behind. */
static void
judge(struct audit *audit, const struct plan_call *call, unsigned effects)
{
    if (!call->answer.final) {
        audit->unresolved++;
        return;
    }
    if (call->answer.status != IDEM_OK) {
        audit->refused++;
        audit->forbidden += effects;
        return;
    }
    audit->missing += effects == 0;
    audit->doubles += effects > 1 ? effects - 1 : 0;
    if (call->kind == PLAN_PAYOUT) {
        audit->provider.expected += call->amount;
    } else {
        audit->accounts.expected += call->amount;
        audit->entries.expected += call->amount;
    }
}

bool
audit_make(struct audit *audit, const struct plan *plan, const char *server,
           const char *log)
{
    struct auditor auditor = {
        .audit = audit,
        .plan = plan,
        .effects = calloc(plan->n_calls, sizeof *auditor.effects),
    };
    bool read;

    *audit = (struct audit){0};
    read = auditor.effects && read_all(&auditor, server, log);
    for (unsigned i = 0; read && i < plan->n_calls; i++)
        judge(audit, &plan->calls[i], auditor.effects[i]);
    free(auditor.effects);
    return read;
}

static bool
agrees(const struct audit_sum *sum)
{
    return sum->expected == sum->found;
}

bool
audit_holds(const struct audit *audit)
{
    return audit->missing + audit->doubles + audit->forbidden +
                   audit->unresolved ==
               0 &&
           agrees(&audit->accounts) && agrees(&audit->entries) &&
           agrees(&audit->provider);
}
