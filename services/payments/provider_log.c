#include "provider_log.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct provider_log {
    FILE *file;
    void *by_key; /* a tree of payments */
    unsigned count;
};

static int
compare_keys(const void *a, const void *b)
{
    const struct payment *left = a, *right = b;

    return strcmp(left->key, right->key);
}

bool
payment_parse(struct payment *payment, const char *line)
{
    return sscanf(line, "%255s %255s %" SCNd64 " %u", payment->key,
                  payment->destination, &payment->amount,
                  &payment->number) == 4;
}

/* Keep a copy in the tree. */
static const struct payment *
remember(struct provider_log *log, const struct payment *payment)
{
    struct payment *copy = malloc(sizeof *copy);

    if (!copy)
        return NULL;
    *copy = *payment;
    if (!tsearch(copy, &log->by_key, compare_keys)) {
        free(copy);
        return NULL;
    }
    log->count++;
    return copy;
}

/* Whole lines are payments; what is behind the last of them is cut off. */
static bool
load(struct provider_log *log)
{
    char line[3 * PAYMENT_WORD_MAX];
    struct payment payment;
    long whole = 0;

    while (fgets(line, sizeof line, log->file) && strchr(line, '\n')) {
        if (payment_parse(&payment, line) && !remember(log, &payment))
            return false;
        whole = ftell(log->file);
    }
    return ftruncate(fileno(log->file), whole) == 0;
}

struct provider_log *
provider_log_open(const char *path)
{
    struct provider_log *log = calloc(1, sizeof *log);

    if (!log)
        return NULL;
    log->file = fopen(path, "a+e");
    if (!log->file) {
        free(log);
        return NULL;
    }
    rewind(log->file);
    if (!load(log)) {
        provider_log_close(log);
        return NULL;
    }
    return log;
}

const struct payment *
provider_log_find(const struct provider_log *log, const char *key)
{
    struct payment wanted = {0};
    struct payment **found;

    snprintf(wanted.key, sizeof wanted.key, "%s", key);
    found = tfind(&wanted, &log->by_key, compare_keys);
    return found ? *found : NULL;
}

const struct payment *
provider_log_add(struct provider_log *log, const char *key,
                 const char *destination, int64_t amount)
{
    struct payment payment = {.amount = amount, .number = log->count + 1};

    snprintf(payment.key, sizeof payment.key, "%s", key);
    snprintf(payment.destination, sizeof payment.destination, "%s",
             destination);
    if (fprintf(log->file, "%s %s %" PRId64 " %u\n", payment.key,
                payment.destination, amount, payment.number) < 0 ||
        fflush(log->file) || fdatasync(fileno(log->file)))
        return NULL;
    return remember(log, &payment);
}

void
provider_log_close(struct provider_log *log)
{
    if (!log)
        return;
    tdestroy(log->by_key, free);
    fclose(log->file);
    free(log);
}
