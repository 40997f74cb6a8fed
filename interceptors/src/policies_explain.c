#include "policies.h"

#include <inttypes.h>

/* Prints a policy for people: a value a line, then where it is from. */

struct writer {
    FILE *out;
    const struct policy *policy;
    struct policy_layers layers;
};

static void
origin(const struct writer *writer, enum config_field field)
{
    const struct policy_origin *from = &writer->policy->origins[field];

    fprintf(writer->out, "  (%s", policy_layer_name(&writer->layers, from));
    if (from->config)
        fprintf(writer->out, ", methodConfig[%u].%s", from->entry,
                config_field_name(from->field));
    fprintf(writer->out, ")\n");
}

static void
write_ms(const struct writer *writer, const char *what, int64_t ms,
         const char *none, enum config_field field)
{
    if (ms > 0)
        fprintf(writer->out, "  %-16s at most %" PRId64 " ms", what, ms);
    else
        fprintf(writer->out, "  %-16s %s", what, none);
    origin(writer, field);
}

/* A config's is an upper limit, the .proto's is for calls that say none. */
static void
write_timeout(const struct writer *writer)
{
    int64_t otherwise_ms = writer->policy->method->timeout_ms;
    char text[64] = "the call's, else the channel's";

    if (otherwise_ms > 0)
        snprintf(text, sizeof text,
                 "the call's or the channel's, else %" PRId64 " ms",
                 otherwise_ms);
    write_ms(writer, "timeout", writer->policy->timeout_ms, text,
             CONFIG_TIMEOUT);
}

static void
write_codes(const struct writer *writer, uint32_t codes)
{
    const char *comma = "";

    if (!codes)
        fprintf(writer->out, "none");
    for (unsigned code = 0; code <= IDEM_UNAUTHENTICATED; code++)
        if (codes & 1u << code) {
            fprintf(writer->out, "%s%s", comma,
                    idem_status_name((enum idem_status)code));
            comma = ", ";
        }
}

static void
write_retry(const struct writer *writer)
{
    const struct idem_retry_policy *retry = &writer->policy->retry;

    fprintf(writer->out, "  %-16s ", "retry");
    if (retry->max_attempts < 2)
        fprintf(writer->out, "none");
    else {
        fprintf(writer->out,
                "%u attempts, %" PRId64 " ms * %g up to %" PRId64 " ms, on ",
                retry->max_attempts, retry->initial_backoff_ms,
                retry->backoff_multiplier_milli / 1000.0,
                retry->max_backoff_ms);
        write_codes(writer, retry->retryable);
    }
    origin(writer, CONFIG_RETRY);
}

static void
write_hedging(const struct writer *writer)
{
    const struct hedging *hedging = &writer->policy->hedging;

    fprintf(writer->out, "  %-16s ", "hedging");
    if (hedging->max_attempts < 2)
        fprintf(writer->out, "none");
    else {
        fprintf(writer->out,
                "%u attempts, one each %" PRId64 " ms, not fatal: ",
                hedging->max_attempts, hedging->delay_ms);
        write_codes(writer, hedging->non_fatal);
    }
    origin(writer, CONFIG_HEDGING);
}

static void
write_size(const struct writer *writer, const char *what, bool limited,
           size_t size, enum config_field field)
{
    if (limited)
        fprintf(writer->out, "  %-16s at most %zu bytes", what, size);
    else
        fprintf(writer->out, "  %-16s the channel's limit", what);
    origin(writer, field);
}

static void
write_resend(const struct writer *writer)
{
    const struct policy *policy = writer->policy;

    fprintf(writer->out, "  %-16s ", "sent again");
    if (policy->max_retry > 0)
        fprintf(writer->out, "up to %zu bytes, over them %s", policy->max_retry,
                policy->send_once ? "once" : "refused");
    else
        fprintf(writer->out, "whatever its size");
    origin(writer, CONFIG_MAX_RETRY);
}

static void
write_policy(const struct writer *writer)
{
    const struct policy *policy = writer->policy;

    write_timeout(writer);
    write_ms(writer, "attempt timeout", policy->attempt_timeout_ms, "none",
             CONFIG_ATTEMPT_TIMEOUT);
    fprintf(writer->out, "  %-16s %s", "wait for ready",
            policy->wait_for_ready ? "yes" : "as the call says");
    origin(writer, CONFIG_WAIT_FOR_READY);
    write_retry(writer);
    write_hedging(writer);
    fprintf(writer->out, "  %-16s %s", "key",
            policy->method->mode == IDEM_MODE_NONE ? "none"
            : policy->method->key_source == IDEM_KEY_FIELDS
                ? "from fields of the request"
            : policy->callers_key ? "the caller's, or the call is refused"
                                  : "the caller's, or minted");
    origin(writer, CONFIG_KEY);
    write_size(writer, "request", policy->limits_request, policy->max_request,
               CONFIG_MAX_REQUEST);
    write_size(writer, "reply", policy->limits_reply, policy->max_reply,
               CONFIG_MAX_REPLY);
    write_resend(writer);
    fprintf(writer->out, "  %-16s %s\n", "doubt",
            policy->safe ? "may be repeated" : "is never repeated");
}

/* Of the whole channel: from which config, and which setting of it. */
static void
channel_origin(const struct writer *writer, const struct config *from,
               const char *setting)
{
    const struct policy_origin origin = {.config = from};

    if (from)
        fprintf(writer->out, "  (%s, %s)\n",
                policy_layer_name(&writer->layers, &origin), setting);
    else
        fprintf(writer->out, "  (no config says one)\n");
}

static void
write_throttle(const struct writer *writer, const struct policy_book *book)
{
    const struct config *from = policy_book_throttling(book);

    fprintf(writer->out, "  %-16s ", "throttle");
    if (from)
        fprintf(writer->out, "%" PRId64 " tokens, a success gives %g",
                from->max_tokens_milli / 1000,
                (double)from->token_ratio_milli / 1000);
    else
        fprintf(writer->out, "none");
    channel_origin(writer, from, "retryThrottling");
}

static void
write_budget(const struct writer *writer, const struct policy_book *book)
{
    const struct config *from = policy_book_budgeting(book);

    fprintf(writer->out, "  %-16s ", "budget");
    if (from)
        fprintf(writer->out, "%g repeats a call, or %u, in each %" PRId64 " ms",
                from->budget_milli / 1000.0, from->budget_floor,
                from->budget_window_ms);
    else
        fprintf(writer->out, "any number of repeats");
    channel_origin(writer, from, "retryBudget");
}

static void
write_balancer(const struct writer *writer, struct idem_channel *channel,
               const struct policy_book *book)
{
    const struct config *from = policy_book_balancing(book);

    fprintf(writer->out, "  %-16s %s", "balancer",
            idem_balancer_name(idem_channel_balancer(channel)));
    if (from)
        channel_origin(writer, from, from->balancing);
    else
        fprintf(writer->out, "  (the channel's option)\n");
}

void
idem_channel_explain(struct idem_channel *channel,
                     const struct idem_method *method, FILE *out)
{
    struct policies *policies =
        (struct policies *)idem_channel_find(channel, &policies_ops);
    struct policy_book *book = policies ? policies_book(policies) : NULL;

    fprintf(out, "%s\n  %-16s %s\n", method->name, "chain",
            idem_channel_chain(channel));
    if (!book)
        return;

    struct writer writer = {out, &policy_book_find(book, method)->policy,
                            policy_book_layers(book)};

    write_policy(&writer);
    write_throttle(&writer, book);
    write_budget(&writer, book);
    write_balancer(&writer, channel, book);
    if (writer.policy->refused[0])
        fprintf(out, "  REFUSED: %s\n", writer.policy->refused);
    fputs(writer.policy->notes, out);
    policy_book_unref(book);
}
