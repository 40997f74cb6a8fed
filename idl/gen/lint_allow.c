#include "lint.h"

#include <string.h>

/* Field numbers: MethodPolicy.allow, ServicePolicy.allow, and of Allow. */
enum {
    METHOD_ALLOW = 23,
    SERVICE_ALLOW = 24,
    ANYONE = 1,
    KNOWN = 2,
    IDENTITIES = 3,
    ROLES = 4,
};

#define NAME_MAX_BYTES 255

/* One rule, and where it stands. */
struct rule {
    struct complaints *complaints;
    const file_proto *file;
    const char *whose; /* "method Charge" */
    struct path path;  /* of the Allow */
    const allow_policy *allow;
};

static void
say(const struct rule *rule, int number, const char *words)
{
    struct path path = path_option(&rule->path, number);

    complain(rule->complaints, rule->file, &path, "%s: allow: %s", rule->whose,
             words);
}

/* Why it can be nobody's name; NULL when it can. */
static const char *
fault_of(const char *name, bool pattern)
{
    size_t size = strlen(name);

    if (size == 0)
        return "is empty";
    if (size > NAME_MAX_BYTES)
        return "has over 255 bytes";
    if (pattern && !strcmp(name, "*"))
        return "is everybody who is known: say known";
    for (size_t i = 0; i < size; i++) {
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '"' ||
            name[i] == '\\')
            return "has printable ASCII characters only, no space, quote or "
                   "backslash";
        if (name[i] == '*' && (!pattern || i + 1 < size))
            return pattern ? "has a * before its end" : "has a *";
    }
    return NULL;
}

static bool
stands_before(char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static void
check_names(const struct rule *rule, int number, char *const *names, size_t n)
{
    const char *what = number == ROLES ? "role" : "identity";
    struct pool *pool = rule->complaints->pool;

    for (size_t i = 0; i < n; i++) {
        const char *fault = fault_of(names[i], number == IDENTITIES);

        if (fault)
            say(rule, number,
                pool_printf(pool, "%s \"%s\" %s", what, names[i], fault));
        else if (stands_before(names, i, names[i]))
            say(rule, number,
                pool_printf(pool, "%s \"%s\" is given twice", what, names[i]));
    }
}

static void
check_rule(const struct rule *rule)
{
    const allow_policy *allow = rule->allow;
    bool names = allow->n_identities > 0 || allow->n_roles > 0;

    if (!allow->anyone && !allow->known && !names)
        complain(rule->complaints, rule->file, &rule->path,
                 "%s: allow lets nobody in: say anyone, known, identities or "
                 "roles",
                 rule->whose);
    if (allow->anyone && (allow->known || names))
        say(rule, ANYONE, "anyone makes the rest mean nothing: choose");
    else if (allow->known && names)
        say(rule, KNOWN, "known makes the rest mean nothing: choose");
    check_names(rule, IDENTITIES, allow->identities, allow->n_identities);
    check_names(rule, ROLES, allow->roles, allow->n_roles);
}

static struct path
rule_path(const struct path *thing, int options, int number)
{
    struct path path = path_option(thing, options);

    path = path_option(&path, OPTION_NUMBER);
    return path_option(&path, number);
}

void
lint_service_allow(struct complaints *complaints, const struct service *service)
{
    const struct rule rule = {
        complaints, service->file->proto,
        pool_printf(complaints->pool, "service %s", service->proto->name),
        rule_path(&service->path, SERVICE_OPTIONS, SERVICE_ALLOW),
        service->allow};

    if (service->allow)
        check_rule(&rule);
}

void
lint_method_allow(struct complaints *complaints, const struct method *method)
{
    const struct rule rule = {
        complaints, method->service->file->proto,
        pool_printf(complaints->pool, "method %s", method->proto->name),
        rule_path(&method->path, METHOD_OPTIONS, METHOD_ALLOW),
        method->policy.allow};

    if (method->policy.allow)
        check_rule(&rule);
}
