#ifndef PAYMENTS_PROVIDER_LOG_H
#define PAYMENTS_PROVIDER_LOG_H

#include <stdbool.h>
#include <stdint.h>

#define PAYMENT_WORD_MAX 256 /* bytes of a key or destination, with the NUL */

/* What the fake provider has paid: a line a payment, appended and synced before
 * the answer goes out. "key destination amount number". One thread at a time.
 */
struct provider_log;

struct payment {
    char key[PAYMENT_WORD_MAX];
    char destination[PAYMENT_WORD_MAX];
    int64_t amount;
    unsigned number; /* 1 for the first of the log */
};

/* Read a line of the log. */
bool payment_parse(struct payment *payment, const char *line);

/* Opens the file, made when absent, and reads what is there; a last line that a
 * crash has torn is cut off. NULL and errno when that fails. */
struct provider_log *provider_log_open(const char *path);

/* The payment of a key; NULL: none yet. */
const struct payment *provider_log_find(const struct provider_log *log,
                                        const char *key);

/* Write a payment and sync. NULL and errno when that fails. */
const struct payment *provider_log_add(struct provider_log *log,
                                       const char *key, const char *destination,
                                       int64_t amount);

void provider_log_close(struct provider_log *log);

#endif
