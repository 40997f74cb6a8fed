#include "policy.h"

#include "retry_backoff.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One method's policy out of its layers. Within a config the closest entry is
 * taken whole (config_find); between layers each value is the highest layer's
 * that states it. */

static bool
has_key(const struct idem_method *method)
{
    return method->mode != IDEM_MODE_NONE;
}

static bool
states(const struct config_entry *entry, enum config_field field)
{
    return entry->stated & 1u << field;
}

static void IDEM_PRINTF(2, 3)
    note(struct policy *policy, const char *format, ...)
{
    size_t used = strlen(policy->notes);
    va_list args;

    va_start(args, format);
    vsnprintf(policy->notes + used, sizeof policy->notes - used, format, args);
    va_end(args);
    used = strlen(policy->notes);
    if (used + 1 < sizeof policy->notes)
        memcpy(policy->notes + used, "\n", 2);
}

/* What would repeat an effect without a key is refused when the config names
 * the method, and does not reach the method when it is meant for many. */
static bool
may_repeat(struct policy *policy, const struct config_name *name,
           enum config_field field)
{
    if (policy->safe)
        return true;
    policy->origins[field] = (struct policy_origin){.config = NULL};
    if (name->method[0])
        snprintf(policy->refused, sizeof policy->refused,
                 "methodConfig[%u].%s: %.100s has neither a key nor a declared "
                 "idempotence: it might take effect twice",
                 name->entry, config_field_name(field), policy->method->name);
    else
        note(policy,
             "methodConfig[%u].%s is not taken: it might take effect "
             "twice",
             name->entry, config_field_name(field));
    return false;
}

static int64_t
all_pauses_ms(const struct idem_retry_policy *retry)
{
    const struct retry_backoff backoff = {retry->initial_backoff_ms,
                                          retry->max_backoff_ms,
                                          retry->backoff_multiplier_milli};
    int64_t all_ms = 0;

    for (unsigned n = 1; n < retry->max_attempts; n++)
        all_ms += retry_backoff_base_ns(&backoff, n) / 1000000 * 12 / 10;
    return all_ms;
}

/* Under the .proto's; the config is under the program's already. */
static unsigned
lower(struct policy *policy, const struct config_name *name,
      enum config_field field, unsigned attempts)
{
    unsigned promised = policy->method->retry.max_attempts;

    if (attempts > promised)
        note(policy, "methodConfig[%u].%s.maxAttempts is %u; the .proto has %u",
             name->entry, config_field_name(field), attempts, promised);
    return attempts < promised ? attempts : promised;
}

static void
switch_off(struct policy *policy)
{
    const struct policy_origin program = {.program = true};

    policy->origins[CONFIG_RETRY] = policy->origins[CONFIG_HEDGING] =
        policy->origins[CONFIG_ATTEMPT_TIMEOUT] = program;
    policy->retry = (struct idem_retry_policy){.max_attempts = 0};
    policy->hedging = (struct hedging){.max_attempts = 0};
    policy->attempt_timeout_ms = 0;
    note(policy, "the program has switched retries off");
}

/* Without a config the .proto's attempts are the method's, up to the
 * program's. */
static void
take_proto(struct policy *policy, unsigned attempts_max)
{
    policy->retry = policy->method->retry;
    if (policy->retry.max_attempts <= attempts_max)
        return;
    note(policy, "the .proto has %u attempts; the program takes %u",
         policy->retry.max_attempts, attempts_max);
    policy->retry.max_attempts = attempts_max;
}

static void
take_retry(struct policy *policy, const struct config_entry *entry,
           const struct config_name *name)
{
    unsigned attempts;

    if (!may_repeat(policy, name, CONFIG_RETRY))
        return;
    attempts = lower(policy, name, CONFIG_RETRY, entry->retry.max_attempts);
    policy->retry = entry->retry;
    policy->retry.max_attempts = attempts;
    if (policy->hedging.max_attempts > 0)
        policy->origins[CONFIG_HEDGING] = policy->origins[CONFIG_RETRY];
    policy->hedging = (struct hedging){.max_attempts = 0};
    if (has_key(policy->method) &&
        all_pauses_ms(&policy->retry) > policy->method->window_ms)
        snprintf(policy->refused, sizeof policy->refused,
                 "methodConfig[%u].retryPolicy: its pauses may last longer "
                 "than the key is remembered (%" PRId64 " ms)",
                 name->entry, policy->method->window_ms);
}

static void
take_hedging(struct policy *policy, const struct config_entry *entry,
             const struct config_name *name)
{
    unsigned attempts;

    if (!may_repeat(policy, name, CONFIG_HEDGING))
        return;
    attempts = lower(policy, name, CONFIG_HEDGING, entry->hedging.max_attempts);
    policy->hedging = entry->hedging;
    policy->hedging.max_attempts = attempts > 1 ? attempts : 0;
}

static void
take_attempt_timeout(struct policy *policy, const struct config_entry *entry,
                     const struct config_name *name)
{
    if (may_repeat(policy, name, CONFIG_ATTEMPT_TIMEOUT))
        policy->attempt_timeout_ms = entry->attempt_timeout_ms;
}

static void
take_limits(struct policy *policy, const struct config_entry *entry)
{
    if (states(entry, CONFIG_MAX_REQUEST)) {
        policy->limits_request = true;
        policy->max_request = entry->max_request;
    }
    if (states(entry, CONFIG_MAX_REPLY)) {
        policy->limits_reply = true;
        policy->max_reply = entry->max_reply;
    }
    if (states(entry, CONFIG_MAX_RETRY))
        policy->max_retry = entry->max_retry;
    if (states(entry, CONFIG_OVER_RETRY))
        policy->send_once = entry->send_once;
}

static void
take_layer(struct policy *policy, const struct config *config)
{
    const struct config_name *name;
    const struct config_entry *entry =
        config_find(config, policy->method->name, &name);

    if (!entry)
        return;
    for (unsigned field = 0; field < CONFIG_FIELD_COUNT; field++)
        if (states(entry, (enum config_field)field))
            policy->origins[field] = (struct policy_origin){
                config, name->entry, (enum config_field)field, false};
    if (states(entry, CONFIG_TIMEOUT))
        policy->timeout_ms = entry->timeout_ms;
    if (states(entry, CONFIG_WAIT_FOR_READY))
        policy->wait_for_ready = entry->wait_for_ready;
    if (states(entry, CONFIG_KEY))
        policy->callers_key = entry->callers_key;
    take_limits(policy, entry);
    if (states(entry, CONFIG_RETRY))
        take_retry(policy, entry, name);
    if (states(entry, CONFIG_HEDGING))
        take_hedging(policy, entry, name);
    if (states(entry, CONFIG_ATTEMPT_TIMEOUT))
        take_attempt_timeout(policy, entry, name);
}

void
policy_make(struct policy *policy, const struct idem_method *method,
            const struct policy_layers *layers)
{
    *policy = (struct policy){
        .method = method,
        .safe = has_key(method) || method->read_only || method->idempotent,
    };
    take_proto(policy, layers->attempts_max);
    take_layer(policy, layers->file);
    take_layer(policy, layers->environment);
    if (layers->no_retries)
        switch_off(policy);
}

const char *
policy_layer_name(const struct policy_layers *layers,
                  const struct policy_origin *origin)
{
    if (!origin->config)
        return origin->program ? "the program" : ".proto";
    return origin->config == layers->file ? "file" : "environment";
}
