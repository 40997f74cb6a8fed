#include "config_value.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MESSAGE_MAX ((int64_t)1 << 30)

/* An entry of methodConfig: what may stand in it. */

/* --- retryPolicy, hedgingPolicy --- */

static void
read_attempts(struct reader *reader, const struct place *place,
              const json_t *value, void *into)
{
    unsigned *attempts = into;
    int64_t number = 0;

    read_whole(reader, place, value, 2, INT32_MAX, &number);
    if (number > reader->attempts_max) {
        reader_note(reader, place, "is taken as %u, the most that there are",
                    reader->attempts_max);
        number = reader->attempts_max;
    }
    *attempts = (unsigned)number;
}

static void
read_initial_backoff(struct reader *reader, const struct place *place,
                     const json_t *value, void *into)
{
    struct idem_retry_policy *retry = into;

    read_duration(reader, place, value, false, &retry->initial_backoff_ms);
}

static void
read_max_backoff(struct reader *reader, const struct place *place,
                 const json_t *value, void *into)
{
    struct idem_retry_policy *retry = into;

    read_duration(reader, place, value, false, &retry->max_backoff_ms);
}

static void
read_multiplier(struct reader *reader, const struct place *place,
                const json_t *value, void *into)
{
    struct idem_retry_policy *retry = into;
    int64_t milli = 0;

    read_thousandths(reader, place, value, 1000, &milli);
    retry->backoff_multiplier_milli = (unsigned)milli;
}

static void
read_retryable(struct reader *reader, const struct place *place,
               const json_t *value, void *into)
{
    struct idem_retry_policy *retry = into;

    read_codes(reader, place, value, &retry->retryable);
    if (json_is_array(value) && json_array_size(value) == 0)
        reader_fault(reader, place, "is empty");
    if (retry->retryable & 1u << IDEM_DEADLINE_EXCEEDED)
        reader_note(reader, place,
                    "DEADLINE_EXCEEDED only helps when the server says it "
                    "before the call's own deadline");
}

static void
read_retry_attempts(struct reader *reader, const struct place *place,
                    const json_t *value, void *into)
{
    struct idem_retry_policy *retry = into;

    read_attempts(reader, place, value, &retry->max_attempts);
}

static void
read_retry(struct reader *reader, const struct place *place,
           const json_t *value, void *into)
{
    static const struct member members[] = {
        {"maxAttempts", true, read_retry_attempts},
        {"initialBackoff", true, read_initial_backoff},
        {"maxBackoff", true, read_max_backoff},
        {"backoffMultiplier", true, read_multiplier},
        {"retryableStatusCodes", true, read_retryable},
    };
    struct config_entry *entry = into;

    entry->stated |= 1u << CONFIG_RETRY;
    read_members(reader, place, value, members, COUNT(members), &entry->retry);
}

static void
read_hedges(struct reader *reader, const struct place *place,
            const json_t *value, void *into)
{
    struct hedging *hedging = into;

    read_attempts(reader, place, value, &hedging->max_attempts);
}

static void
read_delay(struct reader *reader, const struct place *place,
           const json_t *value, void *into)
{
    struct hedging *hedging = into;

    read_duration(reader, place, value, true, &hedging->delay_ms);
}

static void
read_non_fatal(struct reader *reader, const struct place *place,
               const json_t *value, void *into)
{
    struct hedging *hedging = into;

    read_codes(reader, place, value, &hedging->non_fatal);
}

static void
read_hedging(struct reader *reader, const struct place *place,
             const json_t *value, void *into)
{
    static const struct member members[] = {
        {"maxAttempts", true, read_hedges},
        {"hedgingDelay", false, read_delay},
        {"nonFatalStatusCodes", false, read_non_fatal},
    };
    struct config_entry *entry = into;

    entry->stated |= 1u << CONFIG_HEDGING;
    read_members(reader, place, value, members, COUNT(members),
                 &entry->hedging);
}

/* --- methodConfig[i] --- */

static void
read_timeout(struct reader *reader, const struct place *place,
             const json_t *value, void *into)
{
    struct config_entry *entry = into;

    entry->stated |= 1u << CONFIG_TIMEOUT;
    read_duration(reader, place, value, false, &entry->timeout_ms);
}

static void
read_attempt_timeout(struct reader *reader, const struct place *place,
                     const json_t *value, void *into)
{
    struct config_entry *entry = into;

    entry->stated |= 1u << CONFIG_ATTEMPT_TIMEOUT;
    read_duration(reader, place, value, false, &entry->attempt_timeout_ms);
}

static void
read_wait_for_ready(struct reader *reader, const struct place *place,
                    const json_t *value, void *into)
{
    struct config_entry *entry = into;

    entry->stated |= 1u << CONFIG_WAIT_FOR_READY;
    read_bool(reader, place, value, &entry->wait_for_ready);
}

static void
read_size(struct reader *reader, const struct place *place, const json_t *value,
          struct config_entry *entry, enum config_field field, size_t *size)
{
    int64_t number = 0;

    entry->stated |= 1u << field;
    read_whole(reader, place, value, 0, MESSAGE_MAX, &number);
    *size = (size_t)number;
}

static void
read_max_request(struct reader *reader, const struct place *place,
                 const json_t *value, void *into)
{
    struct config_entry *entry = into;

    read_size(reader, place, value, entry, CONFIG_MAX_REQUEST,
              &entry->max_request);
}

static void
read_max_reply(struct reader *reader, const struct place *place,
               const json_t *value, void *into)
{
    struct config_entry *entry = into;

    read_size(reader, place, value, entry, CONFIG_MAX_REPLY, &entry->max_reply);
}

static void
read_max_retry(struct reader *reader, const struct place *place,
               const json_t *value, void *into)
{
    struct config_entry *entry = into;

    read_size(reader, place, value, entry, CONFIG_MAX_RETRY, &entry->max_retry);
}

/* One of two words. */
static void
read_word(struct reader *reader, const struct place *place, const json_t *value,
          const char *no, const char *yes, bool *is)
{
    const char *text = json_string_value(value);

    if (text && strcmp(text, yes) == 0)
        *is = true;
    else if (text && strcmp(text, no) == 0)
        *is = false;
    else
        reader_fault(reader, place, "is neither \"%s\" nor \"%s\"", no, yes);
}

static void
read_key(struct reader *reader, const struct place *place, const json_t *value,
         void *into)
{
    struct config_entry *entry = into;

    entry->stated |= 1u << CONFIG_KEY;
    read_word(reader, place, value, "MINTED", "CALLERS", &entry->callers_key);
}

static void
read_over_retry(struct reader *reader, const struct place *place,
                const json_t *value, void *into)
{
    struct config_entry *entry = into;

    entry->stated |= 1u << CONFIG_OVER_RETRY;
    read_word(reader, place, value, "REFUSE", "SEND_ONCE", &entry->send_once);
}

void
read_entry(struct reader *reader, const struct place *place,
           const json_t *value, struct config_entry *entry)
{
    static const struct member members[] = {
        {"name", true, config_read_names},
        {"timeout", false, read_timeout},
        {"attemptTimeout", false, read_attempt_timeout},
        {"waitForReady", false, read_wait_for_ready},
        {"maxRequestMessageBytes", false, read_max_request},
        {"maxResponseMessageBytes", false, read_max_reply},
        {"retryPolicy", false, read_retry},
        {"hedgingPolicy", false, read_hedging},
        {"key", false, read_key},
        {"maxRetryBytes", false, read_max_retry},
        {"overRetryBytes", false, read_over_retry},
    };
    const uint32_t both = 1u << CONFIG_RETRY | 1u << CONFIG_HEDGING;

    read_members(reader, place, value, members, COUNT(members), entry);
    if ((entry->stated & both) == both)
        reader_fault(reader, place, "has a retryPolicy and a hedgingPolicy");
}
