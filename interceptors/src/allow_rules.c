#include "allow_rules.h"

#include "word_lines.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define ROLE_PREFIX "role:"

struct reading {
    const char *path;
    struct word_lines lines;
    struct allow_rules *rules;
    struct idem_error *err;
};

static enum idem_status
refuse(const struct reading *reading, const char *why)
{
    return idem_fail(reading->err, IDEM_INVALID_ARGUMENT, "%s: line %u: %s",
                     reading->path, reading->lines.line, why);
}

static bool
is_word(struct idem_bytes word, const char *text)
{
    return idem_bytes_equal(word, idem_bytes_of(text));
}

/* --- Reading --- */

/* The list is a rule's own, which forgets that it may be written to. */
static void
add_name(const char *const **names, unsigned *n, struct idem_bytes name)
{
    char **own = (char **)(uintptr_t)*names;

    own = realloc(own, (*n + 1) * sizeof *own);
    IDEM_ASSERT(own);
    own[(*n)++] = word_copy(name);
    *names = (const char *const *)own;
}

static enum idem_status
add_role(const struct reading *reading, struct idem_allow *allow,
         struct idem_bytes role)
{
    if (!word_is_name(role) || memchr(role.data, '*', role.size))
        return refuse(reading, "after role: comes a role, without a *");
    add_name(&allow->roles, &allow->n_roles, role);
    return IDEM_OK;
}

static enum idem_status
add_identity(const struct reading *reading, struct idem_allow *allow,
             struct idem_bytes identity)
{
    const uint8_t *star;

    if (!word_is_name(identity))
        return refuse(reading, "an identity is over 255 bytes, or not "
                               "printable ASCII");
    star = memchr(identity.data, '*', identity.size);
    if (identity.size == 1 && star)
        return refuse(reading, "\"*\" is everybody who is known: say known");
    if (star && star != identity.data + identity.size - 1)
        return refuse(reading, "a * stands at the end of an identity only");
    add_name(&allow->identities, &allow->n_identities, identity);
    return IDEM_OK;
}

static enum idem_status
add_word(const struct reading *reading, struct idem_allow *allow,
         struct idem_bytes word)
{
    struct idem_bytes prefix = idem_bytes_of(ROLE_PREFIX);

    if (is_word(word, "anyone"))
        allow->anyone = true;
    else if (is_word(word, "known"))
        allow->known = true;
    else if (word.size >= prefix.size &&
             memcmp(word.data, prefix.data, prefix.size) == 0)
        return add_role(reading, allow,
                        (struct idem_bytes){word.data + prefix.size,
                                            word.size - prefix.size});
    else
        return add_identity(reading, allow, word);
    return IDEM_OK;
}

static struct allow_rule *
new_rule(struct allow_rules *rules)
{
    struct allow_rule *at = realloc(rules->at, (rules->n + 1) * sizeof *at);

    IDEM_ASSERT(at);
    rules->at = at;
    at[rules->n] = (struct allow_rule){0};
    return &at[rules->n++];
}

static const struct allow_rule *
rule_of(const struct allow_rules *rules, unsigned n, struct idem_bytes name)
{
    for (unsigned i = 0; i < n; i++)
        if (idem_bytes_equal(idem_bytes_of(rules->at[i].name), name))
            return &rules->at[i];
    return NULL;
}

static enum idem_status
read_line(const struct reading *reading, struct idem_bytes line)
{
    struct allow_rules *rules = reading->rules;
    struct idem_bytes name, word;
    struct allow_rule *rule;
    enum idem_status status = IDEM_OK;
    unsigned words = 0;
    bool nobody = false;

    (void)word_next(&line, &name); /* a line has a first word */
    if (rule_of(rules, rules->n, name))
        return refuse(reading, "has a rule already");
    rule = new_rule(rules);
    rule->name = word_copy(name);
    for (; status == IDEM_OK && word_next(&line, &word); words++) {
        nobody = nobody || is_word(word, "nobody");
        if (!is_word(word, "nobody"))
            status = add_word(reading, &rule->allow, word);
    }
    if (status == IDEM_OK && words == 0)
        return refuse(reading, "says nobody who may: write nobody");
    if (status == IDEM_OK && nobody && words > 1)
        return refuse(reading, "nobody stands alone");
    return status;
}

static void
free_names(const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        free((void *)(uintptr_t)names[i]);
    free((void *)(uintptr_t)names);
}

static void
rules_free(void *meaning)
{
    struct allow_rules *rules = meaning;

    for (unsigned i = 0; i < rules->n; i++) {
        const struct idem_allow *allow = &rules->at[i].allow;

        free_names(allow->identities, allow->n_identities);
        free_names(allow->roles, allow->n_roles);
        free(rules->at[i].name);
    }
    free(rules->at);
    free(rules);
}

static enum idem_status
rules_read(void **meaning, const char *path, struct idem_bytes text,
           struct idem_error *err)
{
    struct reading reading = {
        .path = path, .lines = {.rest = text}, .err = err};
    enum idem_status status = IDEM_OK;
    struct idem_bytes line;

    reading.rules = calloc(1, sizeof *reading.rules);
    IDEM_ASSERT(reading.rules);
    while (status == IDEM_OK && word_lines_next(&reading.lines, &line))
        status = read_line(&reading, line);
    if (status != IDEM_OK) {
        rules_free(reading.rules);
        return status;
    }
    *meaning = reading.rules;
    return IDEM_OK;
}

const struct kept_file_ops allow_rules_ops = {
    .max_size = FILE_MAX_BYTES,
    .read = rules_read,
    .free = rules_free,
};

/* --- Asking --- */

const struct idem_allow *
allow_rules_find(const struct allow_rules *rules, const char *method)
{
    struct idem_bytes own = idem_bytes_of(method);
    struct idem_bytes service = {own.data, strcspn(method, "/")};
    const struct allow_rule *rule = rule_of(rules, rules->n, own);

    if (!rule)
        rule = rule_of(rules, rules->n, service);
    return rule ? &rule->allow : NULL;
}

static bool
matches(const char *pattern, struct idem_bytes identity)
{
    size_t size = strlen(pattern);

    if (pattern[size - 1] != '*')
        return idem_bytes_equal(idem_bytes_of(pattern), identity);
    return identity.size >= size - 1 &&
           memcmp(pattern, identity.data, size - 1) == 0;
}

static bool
has_role(const struct idem_principal *principal, const char *role)
{
    for (unsigned i = 0; i < principal->n_roles; i++)
        if (idem_bytes_equal(principal->roles[i], idem_bytes_of(role)))
            return true;
    return false;
}

bool
allow_lets_in(const struct idem_allow *allow,
              const struct idem_principal *principal)
{
    if (allow->anyone || (allow->known && principal))
        return true;
    if (!principal)
        return false;
    for (unsigned i = 0; i < allow->n_identities; i++)
        if (matches(allow->identities[i], principal->identity))
            return true;
    for (unsigned i = 0; i < allow->n_roles; i++)
        if (has_role(principal, allow->roles[i]))
            return true;
    return false;
}
