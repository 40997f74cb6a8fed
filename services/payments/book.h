#ifndef PAYMENTS_BOOK_H
#define PAYMENTS_BOOK_H

#include <idem/tx.h>

/* The books: accounts and their entries, in the transaction of a call. Every
 * function fails the call's context itself and hands the status back. */

struct book {
    struct idem_context *context;
    struct idem_tx *tx;
};

struct booking {
    int64_t balance; /* of the account, afterwards */
    int64_t entry;   /* the entry's number */
};

/* What an entry says beside its amount. */
struct book_note {
    const char *order_id; /* "": no order */
    const char *memo;
};

/**
 * @retval IDEM_UNAVAILABLE  the database is away
 */
enum idem_status book_open(struct book *book, struct idem_context *context);

/**
 * Write an entry and change the balance by amount, which is below 0 when money
 * is taken.
 *
 * @retval IDEM_INVALID_ARGUMENT     an amount of 0, or out of range
 * @retval IDEM_NOT_FOUND            no such account
 * @retval IDEM_FAILED_PRECONDITION  the balance does not suffice
 * @retval IDEM_ALREADY_EXISTS       the order is paid; the trailer "paid-by"
 *                                   names the account and entry that did
 */
enum idem_status book_enter(const struct book *book, const char *account,
                            int64_t amount, const struct book_note *note,
                            struct booking *booking);

/* The rows of a statement, in which failing is the context's. */
enum idem_status book_sql(const struct book *book, struct idem_rows **rows,
                          const char *sql, const struct idem_value *values,
                          size_t n);

#endif
