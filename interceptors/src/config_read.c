#include "config_value.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TOKENS_MAX 1000

/* The service config as a whole: which settings there are. */

static void
read_entries(struct reader *reader, const struct place *place,
             const json_t *value, void *into)
{
    struct config *config = into;
    size_t count = json_array_size(value);

    if (!json_is_array(value)) {
        reader_fault(reader, place, "is not an array");
        return;
    }
    config->entries = calloc(count ? count : 1, sizeof *config->entries);
    IDEM_ASSERT(config->entries);
    config->n_entries = (unsigned)count;
    for (size_t i = 0; i < count; i++) {
        struct place inner = {place, NULL, i};

        read_entry(reader, &inner, json_array_get(value, i),
                   &config->entries[i]);
    }
}

static void
read_max_tokens(struct reader *reader, const struct place *place,
                const json_t *value, void *into)
{
    struct config *config = into;
    int64_t tokens = 0;

    read_whole(reader, place, value, 1, TOKENS_MAX, &tokens);
    config->max_tokens_milli = tokens * 1000;
}

static void
read_token_ratio(struct reader *reader, const struct place *place,
                 const json_t *value, void *into)
{
    struct config *config = into;

    read_thousandths(reader, place, value, TOKENS_MAX,
                     &config->token_ratio_milli);
}

static void
read_throttling(struct reader *reader, const struct place *place,
                const json_t *value, void *into)
{
    static const struct member members[] = {
        {"maxTokens", true, read_max_tokens},
        {"tokenRatio", true, read_token_ratio},
    };

    read_members(reader, place, value, members, COUNT(members), into);
}

static void
read_budget_ratio(struct reader *reader, const struct place *place,
                  const json_t *value, void *into)
{
    struct config *config = into;
    int64_t milli = 0;

    read_thousandths(reader, place, value, 1, &milli);
    config->budget_milli = (unsigned)milli;
}

static void
read_budget_floor(struct reader *reader, const struct place *place,
                  const json_t *value, void *into)
{
    struct config *config = into;
    int64_t floor = 0;

    read_whole(reader, place, value, 0, INT32_MAX, &floor);
    config->budget_floor = (unsigned)floor;
}

static void
read_budget_window(struct reader *reader, const struct place *place,
                   const json_t *value, void *into)
{
    struct config *config = into;

    read_duration(reader, place, value, false, &config->budget_window_ms);
}

static void
read_budget(struct reader *reader, const struct place *place,
            const json_t *value, void *into)
{
    static const struct member members[] = {
        {"ratio", true, read_budget_ratio},
        {"floor", false, read_budget_floor},
        {"window", false, read_budget_window},
    };
    struct config *config = into;

    config->budget_floor = 10;
    config->budget_window_ms = 10000;
    read_members(reader, place, value, members, COUNT(members), into);
}

static void
read_all(struct reader *reader, const json_t *value)
{
    static const struct member members[] = {
        {"methodConfig", false, read_entries},
        {"retryThrottling", false, read_throttling},
        {"retryBudget", false, read_budget},
        {"loadBalancingPolicy", false, read_balancing_policy},
        {"loadBalancingConfig", false, read_balancing},
        {"healthCheckConfig", false, read_foreign},
    };
    struct place whole = {NULL, NULL, 0};

    read_members(reader, &whole, value, members, COUNT(members),
                 reader->config);
}

struct config *
config_read(struct idem_bytes json, unsigned attempts_max,
            const struct config_listener *listener)
{
    struct reader reader = {.listener = listener, .attempts_max = attempts_max};
    struct place whole = {NULL, NULL, 0};
    json_error_t error;
    json_t *value = json_loadb((const char *)json.data, json.size,
                               JSON_REJECT_DUPLICATES, &error);

    if (!value) {
        reader_fault(&reader, &whole, "line %d, column %d: %s", error.line,
                     error.column, error.text);
        return NULL;
    }
    reader.config = calloc(1, sizeof *reader.config);
    IDEM_ASSERT(reader.config);
    read_all(&reader, value);
    config_check_names(&reader);
    json_decref(value);
    if (reader.faults == 0)
        return reader.config;
    config_free(reader.config);
    return NULL;
}
