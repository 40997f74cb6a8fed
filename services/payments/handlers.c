#include "handlers.h"

#include <string.h>

#include <idem/key.h>

#include "book.h"
#include "provider.h"

#define PROVIDER_TIMEOUT_MS 5000
#define LIST_LIMIT 100
#define LIST_LIMIT_MAX 1000

/* Amounts come from outside: below 0 is turned away before it changes sign. */
static enum idem_status
check_amount(struct idem_context *context, int64_t amount)
{
    if (amount > 0)
        return IDEM_OK;
    return idem_context_fail(context, IDEM_INVALID_ARGUMENT,
                             "the amount must be more than 0");
}

static enum idem_status
open_account_statements(struct idem_context *context,
                        const payments_open_account_request *request,
                        struct idem_statements *statements)
{
    if (!request->account[0] || request->balance < 0)
        return idem_context_fail(context, IDEM_INVALID_ARGUMENT,
                                 "an account has a name and no debts");
    idem_statement_add(
        statements,
        "INSERT INTO account (name, balance) VALUES ($1, $2)"
        " ON CONFLICT (name) DO NOTHING RETURNING balance",
        IDEM_VALUES(idem_text(request->account), idem_int(request->balance)));
    return IDEM_OK;
}

static enum idem_status
open_account_reply(struct idem_context *context,
                   const payments_open_account_request *request,
                   const struct idem_rows *const *rows,
                   payments_open_account_reply *reply)
{
    if (idem_rows_count(rows[0]) == 0)
        return idem_context_fail(context, IDEM_ALREADY_EXISTS,
                                 "there is an account \"%s\"",
                                 request->account);
    reply->balance = idem_rows_int(rows[0], 0, 0);
    return IDEM_OK;
}

static enum idem_status
charge(struct idem_context *context, const payments_charge_request *request,
       payments_charge_reply *reply)
{
    const struct book_note note = {request->order_id, request->memo};
    struct book book;
    struct booking booking;
    enum idem_status status;

    if ((status = check_amount(context, request->amount)) != IDEM_OK ||
        (status = book_open(&book, context)) != IDEM_OK ||
        (status = book_enter(&book, request->account, -request->amount, &note,
                             &booking)) != IDEM_OK)
        return status;
    reply->balance = booking.balance;
    reply->entry = booking.entry;
    return IDEM_OK;
}

static enum idem_status
transfer(struct idem_context *context, const payments_transfer_request *request,
         payments_transfer_reply *reply)
{
    const struct book_note note = {"", request->memo};
    struct book book;
    struct booking taken, given;
    enum idem_status status;

    if (strcmp(request->source, request->target) == 0)
        return idem_context_fail(context, IDEM_INVALID_ARGUMENT,
                                 "the accounts must be two");
    if ((status = check_amount(context, request->amount)) != IDEM_OK ||
        (status = book_open(&book, context)) != IDEM_OK ||
        (status = book_enter(&book, request->source, -request->amount, &note,
                             &taken)) != IDEM_OK ||
        (status = book_enter(&book, request->target, request->amount, &note,
                             &given)) != IDEM_OK)
        return status;
    reply->source_balance = taken.balance;
    reply->target_balance = given.balance;
    return IDEM_OK;
}

/* The time that the provider gets: the caller's, up to a limit. */
static int64_t
provider_time(const struct idem_context *context)
{
    int64_t left = idem_context_remaining_ms(context);

    if (left > PROVIDER_TIMEOUT_MS)
        return PROVIDER_TIMEOUT_MS;
    return left > 1 ? left : 1;
}

static enum idem_status
payout(struct idem_context *context, const payments_payout_request *request,
       payments_payout_reply *reply)
{
    const struct payments_house *house = idem_context_user(context);
    char key[IDEM_KEY_MAX + 1], reference[PROVIDER_REFERENCE_MAX];
    struct idem_error err;
    enum idem_status status;

    if ((status = check_amount(context, request->amount)) != IDEM_OK)
        return status;
    if (!house->provider)
        return idem_context_fail(context, IDEM_UNAVAILABLE,
                                 "this server has no provider");

    /* The same key whenever this call runs again: the provider pays once. */
    status = idem_key_of_step(key, context, "payout", &err);
    if (status == IDEM_OK)
        status = provider_pay(house->provider, key, request->destination,
                              request->amount, provider_time(context),
                              reference, &err);
    if (status != IDEM_OK)
        return idem_context_fail_with(context, &err);
    reply->reference = idem_context_printf(context, "%s", reference);
    return IDEM_OK;
}

static enum idem_status
get_account(struct idem_context *context,
            const payments_get_account_request *request,
            payments_get_account_reply *reply)
{
    struct book book;
    struct idem_rows *rows;
    enum idem_status status;

    if ((status = book_open(&book, context)) != IDEM_OK)
        return status;
    status = book_sql(&book, &rows,
                      "SELECT balance, entries FROM account WHERE name = $1",
                      IDEM_VALUES(idem_text(request->account)));
    if (status != IDEM_OK)
        return status;
    if (idem_rows_count(rows) == 0)
        return idem_context_fail(context, IDEM_NOT_FOUND, "no account \"%s\"",
                                 request->account);
    reply->balance = idem_rows_int(rows, 0, 0);
    reply->entries = idem_rows_int(rows, 0, 1);
    return IDEM_OK;
}

static payments_entry *
read_entry(struct idem_context *context, const struct idem_rows *rows,
           size_t row)
{
    static const payments_entry empty = PAYMENTS_ENTRY_INIT;
    payments_entry *entry = idem_context_alloc(context, sizeof *entry);

    *entry = empty;
    entry->number = idem_rows_int(rows, row, 0);
    entry->amount = idem_rows_int(rows, row, 1);
    entry->order_id =
        idem_context_printf(context, "%s", idem_rows_text(rows, row, 2));
    entry->memo =
        idem_context_printf(context, "%s", idem_rows_text(rows, row, 3));
    return entry;
}

static enum idem_status
list_entries(struct idem_context *context,
             const payments_list_entries_request *request,
             payments_list_entries_reply *reply)
{
    uint32_t limit = request->limit ? request->limit : LIST_LIMIT;
    struct book book;
    struct idem_rows *rows;
    enum idem_status status;

    if (limit > LIST_LIMIT_MAX)
        limit = LIST_LIMIT_MAX;
    if ((status = book_open(&book, context)) != IDEM_OK)
        return status;
    status = book_sql(&book, &rows,
                      "SELECT number, amount, order_id, memo FROM entry"
                      " WHERE account = $1 AND number > $2"
                      " ORDER BY number LIMIT $3",
                      IDEM_VALUES(idem_text(request->account),
                                  idem_int(request->after), idem_int(limit)));
    if (status != IDEM_OK)
        return status;

    reply->n_entries = idem_rows_count(rows);
    reply->entries = idem_context_alloc(context, (reply->n_entries + 1) *
                                                     sizeof *reply->entries);
    for (size_t row = 0; row < reply->n_entries; row++)
        reply->entries[row] = read_entry(context, rows, row);
    return IDEM_OK;
}

static enum idem_status
get_totals(struct idem_context *context,
           const payments_get_totals_request *request,
           payments_get_totals_reply *reply)
{
    struct book book;
    struct idem_rows *rows;
    enum idem_status status;

    (void)request;
    if ((status = book_open(&book, context)) != IDEM_OK)
        return status;
    /* PostgreSQL's sums are numeric */
    status = book_sql(&book, &rows,
                      "SELECT count(*), CAST(coalesce(sum(balance), 0) AS "
                      "BIGINT), CAST(coalesce(sum(entries), 0) AS BIGINT)"
                      " FROM account",
                      IDEM_NO_VALUES);
    if (status != IDEM_OK)
        return status;
    reply->accounts = idem_rows_int(rows, 0, 0);
    reply->balance = idem_rows_int(rows, 0, 1);
    reply->entries = idem_rows_int(rows, 0, 2);
    return IDEM_OK;
}

const struct payments_handlers payments_house_handlers = {
    .open_account_statements = open_account_statements,
    .open_account_reply = open_account_reply,
    .charge = charge,
    .transfer = transfer,
    .payout = payout,
    .get_account = get_account,
    .list_entries = list_entries,
    .get_totals = get_totals,
};
