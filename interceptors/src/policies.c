#include "policies.h"

#include <idem/reason.h>

#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1000000

struct policy_book *
policies_book(struct policies *policies)
{
    struct policy_book *book;

    pthread_mutex_lock(&policies->lock);
    book = policies->book ? policy_book_ref(policies->book) : NULL;
    pthread_mutex_unlock(&policies->lock);
    return book;
}

/* The page is what is kept with each call, and a reference of its book. */
static const struct policy_page *
page_of(const struct idem_interceptor *self, const struct idem_call *call)
{
    return idem_call_state(call, self);
}

const struct policy *
policies_of(const struct policies *policies, const struct idem_call *call)
{
    return &page_of(&policies->base, call)->policy;
}

/* --- The request: what the policy forbids, and what it lowers --- */

static enum idem_status
check(const struct policy *policy, const struct idem_call *call,
      struct idem_error *err)
{
    if (policy->refused[0])
        return idem_fail(err, IDEM_FAILED_PRECONDITION, "service config: %s",
                         policy->refused);
    if (policy->callers_key && !call->key.data && !call->parent &&
        policy->method->mode != IDEM_MODE_NONE &&
        policy->method->key_source != IDEM_KEY_FIELDS)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING,
                                "the service config wants the caller's own "
                                "key for %s",
                                policy->method->name);
    if (policy->limits_request && call->request.size > policy->max_request)
        return idem_fail_reason(err, IDEM_RESOURCE_EXHAUSTED,
                                IDEM_REQUEST_TOO_LARGE,
                                "the request is %zu bytes, the service config "
                                "takes %zu",
                                call->request.size, policy->max_request);
    if (policy->max_retry > 0 && !policy->send_once &&
        call->request.size > policy->max_retry)
        return idem_fail_reason(err, IDEM_RESOURCE_EXHAUSTED,
                                IDEM_REQUEST_TOO_LARGE,
                                "the request is %zu bytes, maxRetryBytes is "
                                "%zu",
                                call->request.size, policy->max_retry);
    return IDEM_OK;
}

static void
lower(const struct policy *policy, struct idem_call *call)
{
    int64_t now_ns;

    if (policy->wait_for_ready)
        idem_call_wait_for_ready(call);
    if (policy->timeout_ms <= 0)
        return;
    now_ns = call->clock->monotonic_ns(call->clock);
    if (policy->timeout_ms < (INT64_MAX - now_ns) / NS_PER_MS)
        idem_call_lower_deadline(call, now_ns + policy->timeout_ms * NS_PER_MS);
}

/* One that somebody above sends down again goes on by the policy that it began
 * with. */
static enum idem_step
policies_request(struct idem_interceptor *self, struct idem_call *call)
{
    struct policies *policies = (struct policies *)self;
    struct policy_page *page = idem_call_state(call, self);
    bool again = page != NULL;
    struct idem_error err;

    if (!again) {
        page = policy_book_find(policies_book(policies), call->method);
        idem_call_set_state(call, self, page);
    }
    if (check(&page->policy, call, &err) != IDEM_OK) {
        idem_call_fail_with(call, IDEM_EFFECT_NOT_SENT, &err);
        return IDEM_ANSWER;
    }
    if (again)
        return IDEM_NEXT;
    lower(&page->policy, call);
    if (budget_is_on(&policies->budget))
        budget_call(&policies->budget, call->clock->monotonic_ns(call->clock));
    return IDEM_NEXT;
}

static enum idem_step
policies_reply(struct idem_interceptor *self, struct idem_call *call)
{
    const struct policy *policy = policies_of((struct policies *)self, call);
    bool final = call->outcome.final;

    if (call->outcome.status != IDEM_OK || !policy->limits_reply ||
        call->reply.size <= policy->max_reply)
        return IDEM_NEXT;
    idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, call->outcome.effect,
                   IDEM_REPLY_TOO_LARGE,
                   "the reply is %zu bytes, the service config takes %zu",
                   call->reply.size, policy->max_reply);
    call->outcome.final = final;
    return IDEM_NEXT;
}

static void
policies_forget(struct idem_interceptor *self, struct idem_call *call)
{
    policy_book_unref(page_of(self, call)->book);
}

/* --- Its life --- */

/* Nobody is told anything after the channel is closed, whoever still has the
 * handle of a call. */
static void
policies_stop(struct idem_interceptor *self)
{
    policy_watch_stop((struct policies *)self);
}

static void
policies_free(struct idem_interceptor *self)
{
    struct policies *policies = (struct policies *)self;

    policy_watch_stop(policies);
    policy_book_unref(policies->book);
    throttle_fini(&policies->throttle);
    budget_fini(&policies->budget);
    pthread_mutex_destroy(&policies->loading);
    pthread_mutex_destroy(&policies->lock);
    free(policies->environment);
    free(policies->text);
    free(policies->above);
    free(policies->path);
    free(policies);
}

/* Above deadline, which looks at what it lowers: a channel adds it before. */
const struct idem_interceptor_ops policies_ops = {
    .name = "policy",
    .band = IDEM_BAND_DEADLINE,
    .request = policies_request,
    .reply = policies_reply,
    .forget = policies_forget,
    .join = policies_join,
    .stop = policies_stop,
    .free = policies_free,
};

static bool
has_files(const struct policies *policies)
{
    return policies->path || policies_environment_path(policies);
}

static struct policies *
bare(const struct idem_policy_options *options)
{
    const char *stated = getenv("IDEM_SERVICE_CONFIG");
    struct policies *policies = calloc(1, sizeof *policies);

    IDEM_ASSERT(policies);
    policies->base.ops = &policies_ops;
    policies->options = *options;
    policies->last_line = &policies->lines;
    policies->options.config_file = policies->options.config_json = NULL;
    if (options->config_file)
        policies->path = strdup(options->config_file);
    if (stated && !options->ignore_environment)
        policies->environment = strdup(stated);
    throttle_init(&policies->throttle);
    budget_init(&policies->budget);
    pthread_mutex_init(&policies->loading, NULL);
    pthread_mutex_init(&policies->lock, NULL);
    return policies;
}

enum idem_status
idem_policy_new(struct idem_interceptor **out,
                const struct idem_policy_options *options,
                struct idem_error *err)
{
    static const struct idem_policy_options all_defaults;
    struct policies *policies;
    enum idem_status status;

    options = options ? options : &all_defaults;
    if (options->config_file && options->config_json)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "config_file and config_json are both given");
    if (options->max_attempts > CONFIG_ATTEMPTS_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "max_attempts is %u; it is at most %d",
                         options->max_attempts, CONFIG_ATTEMPTS_MAX);
    policies = bare(options);
    status = policies_load(policies, options->config_json, false, err);
    if (status == IDEM_OK && has_files(policies))
        status = policy_watch_start(policies, err);
    if (status != IDEM_OK) {
        policies_free(&policies->base);
        return status;
    }
    *out = &policies->base;
    return IDEM_OK;
}

enum idem_status
idem_channel_reload(struct idem_channel *channel, const char *json,
                    struct idem_error *err)
{
    struct policies *policies =
        (struct policies *)idem_channel_find(channel, &policies_ops);

    if (!policies)
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "the channel's chain has no policy");
    if (!json && !has_files(policies))
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "the channel has no config file");
    return policies_load(policies, json, false, err);
}
