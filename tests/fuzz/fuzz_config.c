#include "fuzz.h"

#include "config.h"

#include <string.h>

/* The service config: it is read as a whole, or each fault is a line; what was
 * read keeps to its own rules. */

struct told {
    unsigned faults, notes;
};

static void
fault(void *with, const char *line)
{
    struct told *told = with;

    IDEM_ASSERT(strlen(line) > 0);
    told->faults++;
}

static void
note(void *with, const char *line)
{
    struct told *told = with;

    IDEM_ASSERT(strlen(line) > 0);
    told->notes++;
}

static void
check_entry(const struct config_entry *entry, unsigned attempts_max)
{
    IDEM_ASSERT(entry->timeout_ms >= 0 && entry->attempt_timeout_ms >= 0);
    IDEM_ASSERT(entry->retry.max_attempts <= attempts_max);
    IDEM_ASSERT(entry->hedging.max_attempts <= attempts_max);
    IDEM_ASSERT(entry->hedging.delay_ms >= 0);
    IDEM_ASSERT(entry->stated < 1u << CONFIG_FIELD_COUNT);
}

static void
check(const struct config *config, unsigned attempts_max)
{
    const struct config_name *name = NULL;

    for (unsigned i = 0; i < config->n_entries; i++)
        check_entry(&config->entries[i], attempts_max);
    for (unsigned i = 0; i < config->n_names; i++)
        IDEM_ASSERT(config->names[i].entry < config->n_entries);
    IDEM_ASSERT((size_t)config->balancer <= IDEM_BALANCER_KEY_HASH);
    (void)config_find(config, "pay.v1.Pay/Charge", &name);
    (void)config_find(config, "", NULL);
    (void)config_find(config, "/", NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    unsigned attempts_max = 2 + fuzz_take_byte(&input) % 4;
    struct told told = {0, 0};
    const struct config_listener listener = {fault, note, &told};
    struct config *config = config_read(input, attempts_max, &listener);

    IDEM_ASSERT((config == NULL) == (told.faults > 0));
    if (config)
        check(config, attempts_max);
    config_free(config);
    return 0;
}
