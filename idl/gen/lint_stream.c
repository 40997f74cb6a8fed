#include "lint.h"

#include <string.h>

/* Field numbers of MethodPolicy. */
enum {
    ALIAS = 4,
    KEY_GROUP = 5,
    AFTER_CRASH = 10,
    OVERSIZE = 12,
    DISPATCH = 17,
    TRANSACTION = 19,
};

static void
say(struct complaints *complaints, const struct method *method, int number,
    const char *words)
{
    struct path path = path_option(&method->path, METHOD_OPTIONS);

    path = path_option(&path, OPTION_NUMBER);
    path = path_option(&path, number);
    complain(complaints, method->service->file->proto, &path, "method %s: %s",
             method->proto->name, words);
}

/* Each message is a call of its own, and so is the end of a client stream. */
static void
check_numbered(struct complaints *complaints, const struct method *method)
{
    const struct policy *policy = &method->policy;
    const method_policy *options = policy->options;

    if (!policy->key && (*options->alias || *options->key_group))
        say(complaints, method, *options->alias ? ALIAS : KEY_GROUP,
            "the messages of a stream have the numbers of a session for keys, "
            "which has one key space: no alias, no key_group");
    if (policy->states)
        say(complaints, method, TRANSACTION,
            "transaction STATEMENT is for unary methods: a stream's messages "
            "run one after another");
    if (service_probes(method))
        say(complaints, method, AFTER_CRASH,
            "after_crash PROBE is for unary methods: state steps, HOLD or "
            "REEXECUTE");
    if (strcmp(policy->oversize, "FAIL") != 0)
        say(complaints, method, OVERSIZE,
            "a stream's replies are needed whole when it is begun again: "
            "oversize FAIL only");
}

/* What has a record: an effect, and messages that are read of it. */
static void
check_resumed(struct complaints *complaints, const struct method *method)
{
    const struct policy *policy = &method->policy;

    if (policy->states)
        say(complaints, method, TRANSACTION,
            "a stream's effect has no reply: not with transaction STATEMENT");
    if (service_probes(method))
        say(complaints, method, AFTER_CRASH,
            "a stream's effect has no reply: not with after_crash PROBE");
    if (strcmp(policy->oversize, "FAIL") != 0)
        say(complaints, method, OVERSIZE,
            "what a stream keeps is needed to resume it: oversize FAIL only");
}

void
lint_stream(struct complaints *complaints, const struct method *method)
{
    const struct policy *policy = &method->policy;

    if (!service_streams(method))
        return;
    if (policy->records && policy->answers_later)
        say(complaints, method, DISPATCH,
            "a stream with a mode runs on the POOL");
    if (service_numbers(method))
        check_numbered(complaints, method);
    if (service_resumes(method))
        check_resumed(complaints, method);
    if (policy->options->dispatch == IDEM__V1__METHOD_POLICY__DISPATCH__INLINE)
        say(complaints, method, DISPATCH,
            "dispatch INLINE is for unary methods: a stream's handler runs on "
            "the POOL, or with ASYNC in callbacks");
}
