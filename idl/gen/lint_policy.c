#include "lint.h"

#include "code.h"

#include <inttypes.h>
#include <string.h>

/* Field numbers of MethodPolicy. */
enum {
    MODE = 1,
    KEY = 2,
    WINDOW = 3,
    ALIAS = 4,
    KEY_GROUP = 5,
    RECORDED = 6,
    RELEASED = 7,
    IN_FLIGHT = 8,
    ASK_REDIS = 9,
    AFTER_CRASH = 10,
    MAX_REPLY = 11,
    OVERSIZE = 12,
    LEASE = 13,
    EXECUTION = 14,
    TIMEOUT = 16,
    DISPATCH = 17,
    STEPS = 18,
    TRANSACTION = 19,
    GROUP = 20,
    EXECUTIONS = 22,
    SECRET = 29,
};

#define DISPATCH_IS(name) IDEM__V1__METHOD_POLICY__DISPATCH__##name

struct check {
    struct complaints *complaints;
    const struct method *method;
    const struct policy *policy;
    const method_policy *options;
};

static void
say(const struct check *check, int number, const char *words)
{
    struct path path = path_option(&check->method->path, METHOD_OPTIONS);

    path = path_option(&path, OPTION_NUMBER);
    path = path_option(&path, number);
    complain(check->complaints, check->method->service->file->proto, &path,
             "method %s: %s", check->method->proto->name, words);
}

static void
check_mode(const struct check *check)
{
    const struct policy *policy = check->policy;
    bool stated =
        check->options->mode != IDEM__V1__METHOD_POLICY__MODE__MODE_UNSPECIFIED;

    if (!strcmp(policy->mode, "?"))
        say(check, MODE, "mode is a number without a name");
    if (!strcmp(policy->transaction, "?"))
        say(check, TRANSACTION, "transaction is a number without a name");
    if (policy->states && check->options->group)
        say(check, GROUP, "group is for transaction INTERACTIVE only");
    if (!stated && !policy->read_only)
        complain(check->complaints, check->method->service->file->proto,
                 &check->method->path,
                 "method %s states no mode: say where its effect is with "
                 "option (idem.v1.method) = { mode: TRANSACTION }, LEASED or "
                 "NONE, or that it has none with option idempotency_level = "
                 "NO_SIDE_EFFECTS",
                 check->method->proto->name);
    if (policy->read_only && policy->records)
        say(check, MODE,
            "idempotency_level NO_SIDE_EFFECTS contradicts the mode: a read "
            "records nothing");
    if (policy->records && !policy->states &&
        check->options->dispatch == DISPATCH_IS(INLINE))
        say(check, DISPATCH,
            "dispatch INLINE is for mode NONE and transaction STATEMENT");
    if (!strcmp(policy->mode, "TRANSACTION") && policy->answers_later)
        say(check, DISPATCH,
            "dispatch ASYNC is for modes NONE and LEASED: a transaction is its "
            "thread's and waits for nobody");
}

static const char *
mode_words(int mode)
{
    if (mode == IDEM__V1__METHOD_POLICY__MODE__LEASED)
        return "is for mode LEASED only";
    if (mode == IDEM__V1__METHOD_POLICY__MODE__TRANSACTION)
        return "is for mode TRANSACTION only";
    return "needs a mode that records";
}

/* What only counts in some mode is an error in others, not ignored. */
static void
check_unused(const struct check *check)
{
    const method_policy *o = check->options;
    const int leased = IDEM__V1__METHOD_POLICY__MODE__LEASED;
    const int transaction = IDEM__V1__METHOD_POLICY__MODE__TRANSACTION;
    const struct {
        int number;
        const char *name;
        bool stated;
        int mode; /* 0: any that records */
    } rows[] = {
        {KEY, "key", check->policy->key, 0},
        {SECRET, "secret_keys", o->secret_keys, 0},
        {WINDOW, "window_s", o->window_s, 0},
        {ALIAS, "alias", *o->alias, 0},
        {KEY_GROUP, "key_group", *o->key_group, 0},
        {RECORDED, "recorded", o->n_recorded, 0},
        {RELEASED, "released", o->n_released, 0},
        {IN_FLIGHT, "in_flight", o->in_flight, 0},
        {ASK_REDIS, "ask_redis", o->ask_redis, 0},
        {MAX_REPLY, "max_reply_bytes", o->max_reply_bytes, 0},
        {OVERSIZE, "oversize", o->oversize, 0},
        {EXECUTIONS, "max_executions", o->max_executions, 0},
        {AFTER_CRASH, "after_crash", o->after_crash, leased},
        {LEASE, "lease_ms", o->lease_ms, leased},
        {EXECUTION, "max_execution_ms", o->max_execution_ms, leased},
        {STEPS, "steps", o->steps, leased},
        {TRANSACTION, "transaction", o->transaction, transaction},
        {GROUP, "group", o->group, transaction},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!rows[i].stated || (rows[i].mode ? (int)o->mode == rows[i].mode
                                             : check->policy->records))
            continue;
        say(check, rows[i].number,
            pool_printf(check->complaints->pool, "%s %s", rows[i].name,
                        mode_words(rows[i].mode)));
    }
}

static void
check_range(const struct check *check, int number, const char *name,
            int64_t value, int64_t low, int64_t high)
{
    if (value == 0 || (value >= low && value <= high))
        return;
    if (value < 0)
        say(check, number,
            pool_printf(check->complaints->pool, "%s is negative", name));
    else
        say(check, number,
            pool_printf(check->complaints->pool,
                        "%s is %" PRId64 "; it is from %" PRId64 " to %" PRId64,
                        name, value, low, high));
}

static void
check_numbers(const struct check *check)
{
    const method_policy *o = check->options;

    check_range(check, WINDOW, "window_s", o->window_s, 1, POLICY_WINDOW_MAX_S);
    check_range(check, MAX_REPLY, "max_reply_bytes", o->max_reply_bytes, 1,
                POLICY_REPLY_MAX_BYTES);
    check_range(check, EXECUTIONS, "max_executions", o->max_executions, 1,
                POLICY_EXECUTIONS_MAX);
    check_range(check, GROUP, "group", o->group, POLICY_GROUP_MIN,
                POLICY_GROUP_MAX);
    check_range(check, LEASE, "lease_ms", o->lease_ms, POLICY_LEASE_MIN_MS,
                POLICY_TIME_MAX_MS);
    check_range(check, EXECUTION, "max_execution_ms", o->max_execution_ms, 1,
                POLICY_TIME_MAX_MS);
    check_range(check, TIMEOUT, "timeout_ms", o->timeout_ms, 1,
                POLICY_TIME_MAX_MS);
    if (check->policy->lease_ms > check->policy->max_execution_ms &&
        check->policy->max_execution_ms > 0)
        say(check, EXECUTION,
            pool_printf(check->complaints->pool,
                        "max_execution_ms %" PRId64
                        " is shorter than lease_ms %" PRId64,
                        check->policy->max_execution_ms,
                        check->policy->lease_ms));
}

/* A key must be remembered as long as the client may repeat it, and as long as
 * its call may run. */
static void
check_window(const struct check *check)
{
    const struct policy *policy = check->policy;
    int64_t backoffs = policy_backoffs_ms(policy);
    int64_t longest = policy->options->timeout_ms > backoffs
                          ? policy->options->timeout_ms
                          : backoffs;

    if (policy->window_ms <= 0)
        return;
    if (policy->options->mode == IDEM__V1__METHOD_POLICY__MODE__LEASED &&
        policy->max_execution_ms > policy->window_ms)
        say(check, WINDOW,
            pool_printf(check->complaints->pool,
                        "a call may run for %" PRId64 " ms, longer than its "
                        "key is remembered (%" PRId64 " ms): raise window_s",
                        policy->max_execution_ms, policy->window_ms));
    if (longest > policy->window_ms)
        say(check, WINDOW,
            pool_printf(check->complaints->pool,
                        "retries may last %" PRId64
                        " ms, longer than the key is "
                        "remembered (%" PRId64 " ms): raise window_s",
                        longest, policy->window_ms));
}

static bool
in_list(char *const *list, size_t n, unsigned code)
{
    unsigned other;

    for (size_t i = 0; i < n; i++)
        if (code_parse(list[i], &other) && other == code)
            return true;
    return false;
}

static void
check_list(const struct check *check, int number, const char *name,
           char *const *list, size_t n)
{
    struct pool *pool = check->complaints->pool;
    unsigned code;

    for (size_t i = 0; i < n; i++) {
        if (!code_parse(list[i], &code))
            say(check, number,
                pool_printf(pool, "%s: \"%s\" is no status code", name,
                            list[i]));
        else if (in_list(list, i, code))
            say(check, number,
                pool_printf(pool, "%s: %s is given twice", name, list[i]));
        else if (number == RELEASED && code == CODE_OK)
            say(check, number, "released: OK is always recorded");
        else if (number == RELEASED &&
                 in_list(check->options->recorded, check->options->n_recorded,
                         code))
            say(check, number,
                pool_printf(pool, "%s is recorded and released: choose one",
                            list[i]));
    }
}

static void
check_scope(const struct check *check)
{
    const method_policy *o = check->options;
    const char *at = *o->alias ? o->alias : o->key_group;

    if (*o->alias && *o->key_group)
        say(check, ALIAS, "alias and key_group exclude each other");
    if (!strncmp(o->alias, "group:", 6))
        say(check, ALIAS, "alias begins with \"group:\", which is key_group's");
    for (; *at; at++) {
        if (*at > ' ' && *at <= '~' && *at != '"' && *at != '\\')
            continue;
        say(check, *o->alias ? ALIAS : KEY_GROUP,
            "a scope has printable ASCII characters only, no space, quote or "
            "backslash");
        return;
    }
}

/* A key of fields follows from the request, a session's from the channel. */
static void
check_secret(const struct check *check)
{
    if (check->options->secret_keys &&
        (check->policy->key_fields || check->policy->key_session))
        say(check, SECRET, "secret_keys is for key source MINTED only");
}

static void
check_method(struct complaints *complaints, const struct model *model,
             const struct method *method)
{
    const struct check check = {complaints, method, &method->policy,
                                method->policy.options};
    const method_policy *o = check.options;

    lint_stream(complaints, method);
    check_mode(&check);
    check_unused(&check);
    check_numbers(&check);
    check_window(&check);
    check_list(&check, RECORDED, "recorded", o->recorded, o->n_recorded);
    check_list(&check, RELEASED, "released", o->released, o->n_released);
    check_scope(&check);
    check_secret(&check);
    lint_key(complaints, model, method);
    lint_retry(complaints, method);
    lint_limit(complaints, method);
    lint_method_allow(complaints, method);
}

/* One scope for two methods is one key space, and is said with key_group. */
static void
check_scopes(struct complaints *complaints, const struct service *services,
             size_t n, const struct method *method)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < services[i].n_methods; j++) {
            const struct method *other = &services[i].methods[j];
            const struct check check = {complaints, method, &method->policy,
                                        method->policy.options};

            if (other == method)
                return;
            if (*check.options->key_group || check.policy->key_session ||
                strcmp(other->scope, method->scope))
                continue;
            say(&check, ALIAS,
                pool_printf(complaints->pool,
                            "scope \"%s\" is method %s's: methods share keys "
                            "with key_group",
                            method->scope, other->full));
        }
    }
}

void
lint_policies(struct complaints *complaints, const struct model *model,
              const struct file *file)
{
    size_t n;
    const struct service *services = services_of(model, file, &n);

    for (size_t i = 0; i < n; i++) {
        lint_service_allow(complaints, &services[i]);
        for (size_t j = 0; j < services[i].n_methods; j++) {
            check_method(complaints, model, &services[i].methods[j]);
            check_scopes(complaints, services, n, &services[i].methods[j]);
        }
    }
}
