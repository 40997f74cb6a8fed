#include "emit.h"

/* The array name_what of the names; nothing for none. */
static void
emit_names(struct text *out, const char *name, const char *what,
           char *const *names, size_t n)
{
    if (!n)
        return;
    text_add(out, "static const char *const %s_%s[] = {\n", name, what);
    for (size_t i = 0; i < n; i++)
        text_add(out, "    \"%s\",\n", names[i]);
    text_add(out, "};\n");
}

static void
emit_flag(struct text *out, const char *flag, bool set)
{
    if (set)
        text_add(out, "    .%s = true,\n", flag);
}

static void
emit_list(struct text *out, const char *name, const char *what, size_t n)
{
    if (n)
        text_add(out, "    .%s = %s_%s,\n    .n_%s = %zu,\n", what, name, what,
                 what, n);
}

void
emit_allow(struct text *out, const struct method *method)
{
    const allow_policy *allow = service_allows(method);
    const char *name = method->name;

    if (!allow)
        return;
    text_add(out, "\n");
    emit_names(out, name, "identities", allow->identities, allow->n_identities);
    emit_names(out, name, "roles", allow->roles, allow->n_roles);
    text_add(out, "static const struct idem_allow %s_allow = {\n", name);
    emit_flag(out, "anyone", allow->anyone);
    emit_flag(out, "known", allow->known);
    emit_list(out, name, "identities", allow->n_identities);
    emit_list(out, name, "roles", allow->n_roles);
    text_add(out, "};\n");
}
