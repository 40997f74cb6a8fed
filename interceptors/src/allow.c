#include <idem/allow.h>

#include "allow_rules.h"

#include <idem/reason.h>

#include <stdlib.h>

struct allow {
    struct idem_interceptor base;
    bool known;
    struct kept_file *rules; /* NULL: none */
};

/* An interceptor of the author's may have said whose call it is by the tenant
 * alone. */
static const struct idem_principal *
who(const struct idem_call *call, struct idem_principal *by_tenant)
{
    if (call->principal || call->tenant.size == 0)
        return call->principal;
    *by_tenant = (struct idem_principal){.identity = call->tenant};
    return by_tenant;
}

static bool
by_rule(const struct allow *allow, const struct idem_allow *rule,
        const struct idem_principal *principal)
{
    static const struct idem_allow anyone = {.anyone = true};
    static const struct idem_allow known = {.known = true};

    if (!rule)
        rule = allow->known ? &known : &anyone;
    return allow_lets_in(rule, principal);
}

static bool
may(const struct allow *allow, const struct idem_call *call,
    const struct idem_principal *principal)
{
    const struct idem_allow *rule;
    struct kept *kept;
    bool lets_in;

    if (!allow->rules)
        return by_rule(allow, call->method->allow, principal);
    kept = kept_file_hold(allow->rules);
    rule = allow_rules_find(kept->meaning, call->method->name);
    lets_in = by_rule(allow, rule ? rule : call->method->allow, principal);
    kept_release(kept);
    return lets_in;
}

static enum idem_step
request(struct idem_interceptor *self, struct idem_call *call)
{
    const struct allow *allow = (struct allow *)self;
    struct idem_principal by_tenant;
    const struct idem_principal *principal = who(call, &by_tenant);

    if (may(allow, call, principal))
        return IDEM_NEXT;
    if (!principal)
        idem_call_fail(
            call, IDEM_UNAUTHENTICATED, IDEM_EFFECT_REFUSED, IDEM_TOKEN_MISSING,
            "%s is not for callers that are not known", call->method->name);
    else
        idem_call_fail(
            call, IDEM_PERMISSION_DENIED, IDEM_EFFECT_REFUSED, IDEM_NOT_ALLOWED,
            "%.*s may not call %s", (int)principal->identity.size,
            (const char *)principal->identity.data, call->method->name);
    return IDEM_ANSWER;
}

static void
allow_free(struct idem_interceptor *self)
{
    struct allow *allow = (struct allow *)self;

    kept_file_free(allow->rules);
    free(allow);
}

static const struct idem_interceptor_ops allow_ops = {
    .name = "allow",
    .band = IDEM_BAND_ALLOW,
    .request = request,
    .free = allow_free,
};

enum idem_status
idem_allow_new(struct idem_interceptor **out,
               const struct idem_allow_options *options, struct idem_error *err)
{
    static const struct idem_allow_options all_defaults = {0};
    struct allow *allow = calloc(1, sizeof *allow);
    enum idem_status status = IDEM_OK;

    if (!allow)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (!options)
        options = &all_defaults;
    allow->base.ops = &allow_ops;
    allow->known = options->known;
    if (options->rules_file)
        status =
            kept_file_new(&allow->rules, options->rules_file, &allow_rules_ops,
                          options->reloaded, options->reloaded_with, err);
    if (status != IDEM_OK) {
        allow_free(&allow->base);
        return status;
    }
    *out = &allow->base;
    return IDEM_OK;
}
