#include "fuzz.h"

#include "allow_rules.h"
#include "token_table.h"

#include <string.h>

/* The files of who may call what: tokens, rules. What is wrong is told with the
 * file; what is taken keeps its limits, and a rule lets somebody in or
 * nobody. */

static void
check_tokens(const struct token_table *table)
{
    for (unsigned i = 0; i < table->n; i++) {
        const struct token_entry *entry = &table->entries[i];

        IDEM_ASSERT(entry->identity.size > 0 &&
                    entry->identity.size <= IDEM_IDENTITY_MAX);
        IDEM_ASSERT(entry->n_roles <= IDEM_ROLES_MAX);
        IDEM_ASSERT(i == 0 ||
                    memcmp(entry[-1].hash, entry->hash, IDEM_SHA256_SIZE) < 0);
    }
    (void)token_table_find(table, idem_bytes_of("token"));
}

static void
check_rules(const struct allow_rules *rules)
{
    static const struct idem_principal somebody = {
        .identity = {(const uint8_t *)"svc:till", 8}};

    for (unsigned i = 0; i < rules->n; i++) {
        const struct allow_rule *rule = &rules->at[i];

        IDEM_ASSERT(allow_rules_find(rules, rule->name));
        IDEM_ASSERT(allow_lets_in(&rule->allow, NULL) == rule->allow.anyone);
        if (allow_lets_in(&rule->allow, NULL) || rule->allow.known)
            IDEM_ASSERT(allow_lets_in(&rule->allow, &somebody));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    bool tokens = fuzz_take_byte(&input) % 2 == 0;
    const struct kept_file_ops *ops =
        tokens ? &token_table_ops : &allow_rules_ops;
    struct idem_error err = {0};
    void *meaning;

    if (ops->read(&meaning, "FILE", input, &err) != IDEM_OK) {
        IDEM_ASSERT(strncmp(err.message, "FILE: ", 6) == 0);
        return 0;
    }
    if (tokens)
        check_tokens(meaning);
    else
        check_rules(meaning);
    ops->free(meaning);
    return 0;
}
