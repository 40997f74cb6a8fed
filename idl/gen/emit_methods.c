#include "emit.h"

#include <inttypes.h>

/* What the fingerprint wants to know of the fields in the request and whatever
 * messages can stand in it: which it leaves out, and which are maps. */
struct print {
    const struct type **seen;
    size_t n_seen;
    struct text ignored, maps; /* rows */
    size_t n_ignored, n_maps;
};

static bool
is_map(const struct type *type)
{
    return type && type->message && type->message->options &&
           type->message->options->map_entry;
}

static void
find_print(const struct model *model, const struct type *type,
           struct print *print)
{
    if (!type || !type->message)
        return;
    for (size_t i = 0; i < print->n_seen; i++)
        if (print->seen[i] == type)
            return;
    print->seen[print->n_seen++] = type;
    for (size_t i = 0; i < type->message->n_field; i++) {
        const field_proto *field = type->message->field[i];
        const struct type *inner = model_type(model, field->type_name);
        bool ignored = policy_field_ignored(model->pool, field);

        if (ignored || is_map(inner))
            text_add(ignored ? &print->ignored : &print->maps,
                     "    {&%s__descriptor, %d}, /* %s */\n", type->lower,
                     field->number, field->name);
        print->n_ignored += ignored;
        print->n_maps += !ignored && is_map(inner);
        find_print(model, inner, print);
    }
}

static struct print
emit_print(struct text *out, const struct model *model,
           const struct method *method)
{
    struct print print = {.ignored = {.pool = model->pool},
                          .maps = {.pool = model->pool}};

    print.seen = pool_alloc(model->pool, model->n_types * sizeof(*print.seen));
    find_print(model, method->input, &print);
    if (print.n_ignored)
        text_add(out,
                 "\nstatic const struct idem_ignored_field %s_ignored[] = {\n"
                 "%s};\n",
                 method->name, print.ignored.at);
    if (print.n_maps)
        text_add(out,
                 "\nstatic const struct idem_map_field %s_maps[] = {\n"
                 "%s};\n",
                 method->name, print.maps.at);
    return print;
}

static size_t
emit_key(struct text *out, const struct model *model,
         const struct method *method)
{
    const key_policy *key = method->policy.key;
    struct text rows = {.pool = model->pool};

    if (!key || !key->n_fields)
        return 0;
    text_add(out, "\n");
    for (size_t i = 0; i < key->n_fields; i++) {
        const char *path = key->fields[i];
        const field_proto **fields =
            pool_alloc(model->pool, service_key_depth(path) * sizeof(*fields));
        unsigned depth = service_key_path(model, method->input, path, fields);

        text_add(out, "static const unsigned %s_key_%zu[] = {", method->name,
                 i);
        for (unsigned j = 0; j < depth; j++)
            text_add(out, "%s%d", j ? ", " : "", fields[j]->number);
        text_add(out, "};\n");
        text_add(&rows, "    {\"%s\", %s_key_%zu, %u},\n", path, method->name,
                 i, depth);
    }
    text_add(out, "static const struct idem_key_field %s_key[] = {\n%s};\n",
             method->name, rows.at);
    return key->n_fields;
}

static void
emit_retry(struct text *out, const struct policy *policy)
{
    if (!policy->max_attempts)
        return;
    text_add(out,
             "        .retry = {.max_attempts = %u,\n"
             "                  .initial_backoff_ms = %" PRId64 ",\n"
             "                  .max_backoff_ms = %" PRId64 ",\n"
             "                  .backoff_multiplier_milli = %u,\n"
             "                  .retryable = 0x%" PRIx32 "},\n",
             policy->max_attempts, policy->initial_backoff_ms,
             policy->max_backoff_ms, policy->multiplier_milli,
             policy->retryable);
}

static void
emit_limit(struct text *out, const struct policy *policy)
{
    const limit_policy *limit = policy->limit;

    if (!limit)
        return;
    text_add(out,
             "        .limit = {.max_in_flight = %" PRIu32 ",\n"
             "                  .max_waiting = %" PRId64 ",\n"
             "                  .rate_calls = %" PRIu32 ",\n"
             "                  .rate_per_ms = %" PRId64 ",\n"
             "                  .rate_burst = %" PRId64 "},\n",
             limit->max_in_flight, policy->max_waiting, limit->rate_calls,
             policy->rate_per_ms, policy->rate_burst);
}

static void
emit_policy(struct text *out, const struct policy *policy)
{
    text_add(out,
             "        .mode = IDEM_MODE_%s,\n"
             "        .dispatch = IDEM_DISPATCH_%s,\n"
             "        .read_only = %s,\n"
             "        .idempotent = %s,\n"
             "        .key_source = IDEM_KEY_%s,\n"
             "        .key_required = %s,\n"
             "        .secret_keys = %s,\n",
             policy->mode, policy->dispatch,
             policy->read_only ? "true" : "false",
             policy->idempotent ? "true" : "false",
             policy->key_session  ? "SESSION"
             : policy->key_fields ? "FIELDS"
                                  : "MINTED",
             policy->key_required ? "true" : "false",
             policy->options->secret_keys ? "true" : "false");
    text_add(out,
             "        .window_ms = %" PRId64 ",\n"
             "        .timeout_ms = %" PRId64 ",\n"
             "        .lease_ms = %" PRId64 ",\n"
             "        .max_execution_ms = %" PRId64 ",\n"
             "        .recorded = 0x%" PRIx32 ",\n",
             policy->window_ms, policy->options->timeout_ms, policy->lease_ms,
             policy->max_execution_ms, policy->recorded);
    text_add(out,
             "        .in_flight = IDEM_IN_FLIGHT_%s,\n"
             "        .ask_redis = IDEM_ASK_REDIS_%s,\n"
             "        .after_crash = IDEM_AFTER_CRASH_%s,\n"
             "        .steps = %s,\n"
             "        .max_executions = %" PRId64 ",\n"
             "        .transaction = IDEM_TRANSACTION_%s,\n"
             "        .group = %" PRIu32 ",\n"
             "        .max_reply = %" PRId64 ",\n"
             "        .oversize = IDEM_OVERSIZE_%s,\n",
             policy->in_flight, policy->ask_redis, policy->after_crash,
             policy->options->steps ? "true" : "false", policy->max_executions,
             policy->transaction, policy->options->group, policy->max_reply,
             policy->oversize);
    emit_retry(out, policy);
    emit_limit(out, policy);
}

/* What is hashed of a request. */
static void
emit_fingerprint(struct text *out, const struct method *method,
                 const struct print *print)
{
    if (print->n_ignored)
        text_add(out,
                 "        .ignored = %s_ignored,\n        .n_ignored = %zu,\n",
                 method->name, print->n_ignored);
    if (print->n_maps)
        text_add(out, "        .maps = %s_maps,\n        .n_maps = %zu,\n",
                 method->name, print->n_maps);
}

/* One call of a stream whose messages are calls: a unary method that nobody can
 * call, with the stream's policy. */
static void
emit_part(struct text *out, const struct method *method, const char *part,
          const struct print *print)
{
    bool end = print == NULL;
    const char *none = "idem_no_message";

    text_add(out,
             "\nstatic const struct idem_method %s_%s = {\n"
             "        .name = %s_METHOD,\n"
             "        .scope = \"%s\",\n",
             method->name, part, method->shout, method->scope);
    text_add(
        out, "        .request = &%s,\n",
        end ? none
            : pool_printf(out->pool, "%s__descriptor", method->input->lower));
    text_add(
        out, "        .reply = &%s,\n",
        end || service_server_streams(method)
            ? pool_printf(out->pool, "%s__descriptor", method->output->lower)
            : none);
    if (service_shares_keys(method))
        text_add(out, "        .shares_keys = true,\n");
    text_add(out, "        .invoke = %s_%s,\n", end ? "last" : "invoke",
             method->name);
    if (!end)
        emit_fingerprint(out, method, print);
    emit_policy(out, &method->policy);
    text_add(out, "};\n");
}

static void
emit_parts(struct text *out, const struct method *method,
           const struct print *print)
{
    if (!service_numbers(method))
        return;
    emit_part(out, method, "each", print);
    if (!service_server_streams(method))
        emit_part(out, method, "last", NULL);
}

/* What runs the author's code. */
static void
emit_code(struct text *out, const struct method *method)
{
    const char *name = method->name;

    if (service_numbers(method)) {
        text_add(out, "        .each = &%s_each,\n", name);
        if (!service_server_streams(method))
            text_add(out, "        .end = &%s_last,\n", name);
        return;
    }
    text_add(out, "        .invoke = invoke_%s,\n", name);
    if (service_resumes(method))
        text_add(out, "        .messages = messages_%s,\n", name);
    if (service_probes(method))
        text_add(out, "        .probe = probe_%s,\n", name);
    if (service_rebuilds(method))
        text_add(out, "        .rebuild = rebuild_%s,\n", name);
}

static void
emit_method(struct text *out, const struct method *method, size_t n_key,
            const struct print *print)
{
    text_add(out,
             "    {\n"
             "        .name = %s_METHOD,\n"
             "        .scope = \"%s\",\n"
             "        .request = &%s__descriptor,\n"
             "        .reply = &%s__descriptor,\n",
             method->shout, method->scope, method->input->lower,
             method->output->lower);
    if (service_shares_keys(method))
        text_add(out, "        .shares_keys = true,\n");
    emit_code(out, method);
    if (n_key)
        text_add(
            out,
            "        .key_fields = %s_key,\n        .n_key_fields = %zu,\n",
            method->name, n_key);
    emit_fingerprint(out, method, print);
    if (service_streams(method))
        text_add(out, "        .streams = IDEM_STREAMS_%s,\n",
                 !service_server_streams(method)   ? "CLIENT"
                 : !service_client_streams(method) ? "SERVER"
                                                   : "BOTH");
    emit_policy(out, &method->policy);
    if (service_allows(method))
        text_add(out, "        .allow = &%s_allow,\n", method->name);
    text_add(out, "    },\n");
}

void
emit_methods(struct text *out, const struct model *model,
             const struct service *service)
{
    struct text rows = {.pool = model->pool};

    for (size_t i = 0; i < service->n_methods; i++) {
        const struct method *method = &service->methods[i];
        size_t n_key = emit_key(out, model, method);
        struct print print = emit_print(out, model, method);

        emit_parts(out, method, &print);
        emit_allow(out, method);
        emit_method(&rows, method, n_key, &print);
    }
    text_add(out, "\nconst struct idem_method %s_methods[%zu] = {\n%s};\n",
             service->name, service->n_methods, rows.at);
}
