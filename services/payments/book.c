#include "book.h"

#define AMOUNT_MAX 1000000000000000 /* far from where an int64 overflows */

enum idem_status
book_open(struct book *book, struct idem_context *context)
{
    struct idem_error err;

    book->context = context;
    book->tx = idem_context_tx(context, &err);
    if (!book->tx)
        return idem_context_fail_with(context, &err);
    return IDEM_OK;
}

enum idem_status
book_sql(const struct book *book, struct idem_rows **rows, const char *sql,
         const struct idem_value *values, size_t n)
{
    struct idem_error err;

    if (idem_sql(book->tx, rows, &err, sql, values, n) != IDEM_OK)
        return idem_context_fail_with(book->context, &err);
    return IDEM_OK;
}

/* The balance did not change: because there is no account, or no money. */
static enum idem_status
explain(const struct book *book, const char *account, int64_t amount)
{
    struct idem_rows *rows;
    enum idem_status status;

    status =
        book_sql(book, &rows, "SELECT balance FROM account WHERE name = $1",
                 IDEM_VALUES(idem_text(account)));
    if (status != IDEM_OK)
        return status;
    if (idem_rows_count(rows) == 0)
        return idem_context_fail(book->context, IDEM_NOT_FOUND,
                                 "no account \"%s\"", account);
    return idem_context_fail(book->context, IDEM_FAILED_PRECONDITION,
                             "account \"%s\" has %lld, which does not suffice "
                             "for %lld",
                             account, (long long)idem_rows_int(rows, 0, 0),
                             (long long)-amount);
}

/* The order has an entry already: tell which (case B125). */
static enum idem_status
tell_paid(const struct book *book, const char *order_id)
{
    struct idem_error err;
    struct idem_rows *rows;
    enum idem_status status;
    const char *paid_by;

    status = book_sql(book, &rows,
                      "SELECT account, number FROM entry WHERE order_id = $1",
                      IDEM_VALUES(idem_text(order_id)));
    if (status != IDEM_OK)
        return status;
    if (idem_rows_count(rows) == 0)
        return idem_context_fail(book->context, IDEM_ABORTED,
                                 "order \"%s\" is being paid", order_id);

    paid_by = idem_context_printf(book->context, "%s/%lld",
                                  idem_rows_text(rows, 0, 0),
                                  (long long)idem_rows_int(rows, 0, 1));
    if (idem_context_add_trailer(book->context, "paid-by", paid_by, &err) !=
        IDEM_OK)
        return idem_context_fail_with(book->context, &err);
    return idem_context_fail(book->context, IDEM_ALREADY_EXISTS,
                             "order \"%s\" is paid by %s", order_id, paid_by);
}

static enum idem_status
change_balance(const struct book *book, const char *account, int64_t amount,
               struct booking *booking)
{
    struct idem_rows *rows;
    enum idem_status status;

    if (amount == 0 || amount > AMOUNT_MAX || amount < -AMOUNT_MAX)
        return idem_context_fail(book->context, IDEM_INVALID_ARGUMENT,
                                 "an amount is from 1 to %lld",
                                 (long long)AMOUNT_MAX);
    status = book_sql(book, &rows,
                      "UPDATE account SET balance = balance + $2,"
                      " entries = entries + 1"
                      " WHERE name = $1 AND balance + $2 >= 0"
                      " RETURNING balance, entries",
                      IDEM_VALUES(idem_text(account), idem_int(amount)));
    if (status != IDEM_OK)
        return status;
    if (idem_rows_count(rows) == 0)
        return explain(book, account, amount);
    booking->balance = idem_rows_int(rows, 0, 0);
    booking->entry = idem_rows_int(rows, 0, 1);
    return IDEM_OK;
}

enum idem_status
book_enter(const struct book *book, const char *account, int64_t amount,
           const struct book_note *note, struct booking *booking)
{
    const char *order_id = note->order_id[0] ? note->order_id : NULL;
    struct idem_rows *rows;
    enum idem_status status;

    status = change_balance(book, account, amount, booking);
    if (status != IDEM_OK)
        return status;
    status = book_sql(
        book, &rows,
        "INSERT INTO entry (account, number, amount, order_id, memo)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (order_id) DO NOTHING",
        IDEM_VALUES(idem_text(account), idem_int(booking->entry),
                    idem_int(amount), idem_text(order_id),
                    idem_text(note->memo)));
    if (status != IDEM_OK)
        return status;
    if (idem_rows_affected(rows) == 0)
        return tell_paid(book, order_id);
    return IDEM_OK;
}
