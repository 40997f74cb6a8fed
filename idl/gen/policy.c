#include "policy.h"

#include "code.h"
#include "wire.h"

#define LEVEL(name) GOOGLE__PROTOBUF__METHOD_OPTIONS__IDEMPOTENCY_LEVEL__##name

#define TRANSACTION_IS(name) IDEM__V1__METHOD_POLICY__TRANSACTION__##name

#define OPTION_KEY 2 /* MethodPolicy.key */
#define OPTION_RETRY 15
#define OPTION_LIMIT 25
#define OPTION_ALLOW 23
#define SERVICE_OPTION_ALLOW 24 /* ServicePolicy.allow */

/* The name of an enum's value; the default for 0, "?" for a number that has no
 * name. */
static const char *
name_of(const ProtobufCEnumDescriptor *type, int value, const char *otherwise)
{
    const ProtobufCEnumValue *found;

    if (value == 0)
        return otherwise;
    found = protobuf_c_enum_descriptor_get_value(type, value);
    return found ? found->name : "?";
}

static const allow_policy *
read_allow(struct pool *pool, const ProtobufCBinaryData *bytes, unsigned number)
{
    ProtobufCBinaryData part;

    if (!wire_join(pool, bytes, number, &part))
        return NULL;
    return idem__v1__allow__unpack(&pool->allocator, part.len, part.data);
}

/* The parts that are messages are joined by hand: libprotobuf-c loses repeated
 * fields when a message comes in pieces. */
static void
read_stated(struct policy *policy, struct pool *pool,
            const ProtobufCBinaryData *bytes)
{
    ProtobufCBinaryData part;
    const method_policy *options = idem__v1__method_policy__unpack(
        &pool->allocator, bytes->len, bytes->data);

    if (!options)
        return;
    policy->options = options;
    if (wire_join(pool, bytes, OPTION_KEY, &part))
        policy->key =
            idem__v1__key__unpack(&pool->allocator, part.len, part.data);
    if (wire_join(pool, bytes, OPTION_RETRY, &part))
        policy->retry =
            idem__v1__retry__unpack(&pool->allocator, part.len, part.data);
    if (wire_join(pool, bytes, OPTION_LIMIT, &part))
        policy->limit =
            idem__v1__limit__unpack(&pool->allocator, part.len, part.data);
    policy->allow = read_allow(pool, bytes, OPTION_ALLOW);
}

const allow_policy *
policy_service_allow(struct pool *pool, const service_proto *service)
{
    ProtobufCBinaryData bytes;

    if (!service->options || !wire_join_unknown(pool, &service->options->base,
                                                OPTION_NUMBER, &bytes))
        return NULL;
    return read_allow(pool, &bytes, SERVICE_OPTION_ALLOW);
}

static int64_t
or_default(int64_t stated, int64_t otherwise)
{
    return stated ? stated : otherwise;
}

/* Out of range it stays: the check of ranges comes later, and says so. */
static int64_t
ms_of(int64_t seconds)
{
    int64_t ms;

    if (__builtin_mul_overflow(seconds, (int64_t)1000, &ms))
        return seconds < 0 ? INT64_MIN : INT64_MAX;
    return ms;
}

static uint32_t
codes_of(char *const *codes, size_t n)
{
    uint32_t bits = 0;
    unsigned code;

    for (size_t i = 0; i < n; i++)
        if (code_parse(codes[i], &code))
            bits |= 1u << code;
    return bits;
}

static void
fill_record(struct policy *policy)
{
    const method_policy *o = policy->options;

    policy->window_ms = ms_of(or_default(o->window_s, POLICY_WINDOW_S));
    policy->lease_ms = or_default(o->lease_ms, POLICY_LEASE_MS);
    policy->max_execution_ms =
        or_default(o->max_execution_ms, POLICY_EXECUTION_MS);
    policy->max_executions = or_default(o->max_executions, POLICY_EXECUTIONS);
    policy->max_reply = or_default(o->max_reply_bytes, POLICY_REPLY_BYTES);
    policy->recorded = (code_recorded_default |
                        codes_of(o->recorded, o->n_recorded) | 1u << CODE_OK) &
                       ~codes_of(o->released, o->n_released);
}

static void
fill_key(struct policy *policy)
{
    const key_policy *key = policy->key;

    policy->key_required = policy->records;
    if (!key)
        return;
    policy->key_fields = key->n_fields > 0;
    policy->key_session = key->source == IDEM__V1__KEY__SOURCE__SESSION;
    if (key->presence == IDEM__V1__KEY__PRESENCE__OPTIONAL)
        policy->key_required = false;
}

static void
fill_names(struct policy *policy)
{
    const method_policy *o = policy->options;

    policy->mode =
        name_of(&idem__v1__method_policy__mode__descriptor, o->mode, "NONE");
    policy->in_flight = name_of(&idem__v1__method_policy__in_flight__descriptor,
                                o->in_flight, "WAIT");
    policy->ask_redis = name_of(&idem__v1__method_policy__ask_redis__descriptor,
                                o->ask_redis, "REPEATS");
    policy->after_crash =
        name_of(&idem__v1__method_policy__after_crash__descriptor,
                o->after_crash, "HOLD");
    policy->oversize = name_of(&idem__v1__method_policy__oversize__descriptor,
                               o->oversize, "FAIL");
    policy->transaction =
        name_of(&idem__v1__method_policy__transaction__descriptor,
                o->transaction, "INTERACTIVE");
    policy->states = o->transaction == TRANSACTION_IS(STATEMENT);
    policy->dispatch = name_of(&idem__v1__method_policy__dispatch__descriptor,
                               o->dispatch, policy->states ? "INLINE" : "POOL");
    policy->answers_later =
        o->dispatch == IDEM__V1__METHOD_POLICY__DISPATCH__ASYNC;
}

static void
fill_limit(struct policy *policy)
{
    const limit_policy *limit = policy->limit;

    if (!limit)
        return;
    if (limit->max_in_flight > 0)
        policy->max_waiting =
            or_default(limit->max_waiting, POLICY_LIMIT_WAITING);
    if (limit->rate_calls == 0)
        return;
    policy->rate_per_ms = or_default(limit->rate_per_ms, POLICY_RATE_PER_MS);
    policy->rate_burst = or_default(limit->rate_burst, limit->rate_calls);
    if (policy->rate_burst > POLICY_RATE_BURST_MAX)
        policy->rate_burst = POLICY_RATE_BURST_MAX;
}

static void
fill_retry(struct policy *policy)
{
    static const retry_policy all_defaults = IDEM__V1__RETRY__INIT;
    const retry_policy *retry = policy->retry ? policy->retry : &all_defaults;
    bool safe = policy->records || policy->read_only || policy->idempotent;
    double multiplier =
        retry->backoff_multiplier != 0 ? retry->backoff_multiplier : 2;

    if (!safe || retry->max_attempts == 1)
        return;
    policy->max_attempts = retry->max_attempts;
    if (policy->max_attempts == 0 || policy->max_attempts > POLICY_ATTEMPTS_MAX)
        policy->max_attempts = POLICY_ATTEMPTS;
    policy->initial_backoff_ms = or_default(retry->initial_backoff_ms, 100);
    policy->max_backoff_ms = or_default(retry->max_backoff_ms, 2000);
    if (multiplier >= 1 && multiplier <= 1000)
        policy->multiplier_milli = (unsigned)(multiplier * 1000 + 0.5);
    policy->retryable = retry->n_codes ? codes_of(retry->codes, retry->n_codes)
                                       : 1u << CODE_UNAVAILABLE;
}

void
policy_read(struct policy *policy, struct pool *pool,
            const method_proto *method)
{
    ProtobufCBinaryData bytes;

    *policy = (struct policy){0};
    policy->options =
        idem__v1__method_policy__unpack(&pool->allocator, 0, NULL);
    if (method->options) {
        policy->read_only =
            method->options->idempotency_level == LEVEL(NO_SIDE_EFFECTS);
        policy->idempotent =
            method->options->idempotency_level == LEVEL(IDEMPOTENT);
        if (wire_join_unknown(pool, &method->options->base, OPTION_NUMBER,
                              &bytes))
            read_stated(policy, pool, &bytes);
    }
    policy->records =
        policy->options->mode != IDEM__V1__METHOD_POLICY__MODE__NONE &&
        policy->options->mode !=
            IDEM__V1__METHOD_POLICY__MODE__MODE_UNSPECIFIED;
    fill_names(policy);
    fill_key(policy);
    if (policy->records)
        fill_record(policy);
    fill_retry(policy);
    fill_limit(policy);
}

int64_t
policy_backoffs_ms(const struct policy *policy)
{
    double next = (double)policy->initial_backoff_ms, all = 0;

    for (unsigned i = 1; i < policy->max_attempts; i++) {
        if (next > (double)policy->max_backoff_ms)
            next = (double)policy->max_backoff_ms;
        all += next * 1.2;
        next = next * policy->multiplier_milli / 1000;
    }
    if (all >= 9e18)
        return INT64_MAX;
    return all > -9e18 ? (int64_t)all : INT64_MIN;
}

bool
policy_field_ignored(struct pool *pool, const field_proto *field)
{
    ProtobufCBinaryData bytes;
    const Idem__V1__FieldPolicy *policy;

    if (!field->options ||
        !wire_join_unknown(pool, &field->options->base, OPTION_NUMBER, &bytes))
        return false;
    policy =
        idem__v1__field_policy__unpack(&pool->allocator, bytes.len, bytes.data);
    return policy && policy->not_in_fingerprint;
}
