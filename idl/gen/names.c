#include "names.h"

#include <ctype.h>
#include <string.h>

/* protoc-c's own list (c_helpers.cc), in its order. */
static const char *const keywords[] = {
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "const",
    "const_cast",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "not",
    "not_eq",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "reinterpret_cast",
};

static const char *const unsafe[] = {
    "alignas",  "alignof",      "char16_t", "char32_t",      "constexpr",
    "decltype", "errno",        "export",   "linux",         "noexcept",
    "nullptr",  "restrict",     "stderr",   "static_assert", "stdin",
    "stdout",   "thread_local", "typeof",   "unix",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool
listed(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i], name))
            return true;
    return false;
}

bool
names_keyword(const char *name)
{
    return listed(keywords, COUNT(keywords), name);
}

bool
names_unsafe(const char *name)
{
    return listed(unsafe, COUNT(unsafe), name);
}

bool
names_identifier(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

/* protoc-c: dots become two underscores; the pieces in camel case. */
const char *
names_theirs_type(struct pool *pool, const char *full)
{
    char *out = pool_alloc(pool, 2 * strlen(full) + 1), *at = out;
    bool start = true;

    for (; *full; full++) {
        if (*full == '.') {
            *at++ = '_';
            *at++ = '_';
            start = true;
        } else if (*full == '_') {
            start = true;
        } else {
            *at++ = start ? (char)toupper((unsigned char)*full) : *full;
            start = false;
        }
    }
    return out;
}

/* protoc-c: an underscore before a capital that follows none. */
static char *
theirs_split(struct pool *pool, const char *full, int (*letter)(int))
{
    char *out = pool_alloc(pool, 2 * strlen(full) + 1), *at = out;
    bool capital = true;

    for (; *full; full++) {
        bool was = capital;

        if (*full == '.') {
            *at++ = '_';
            *at++ = '_';
            capital = true;
            continue;
        }
        capital = isupper((unsigned char)*full);
        if (capital && !was)
            *at++ = '_';
        *at++ = (char)letter((unsigned char)*full);
    }
    return out;
}

const char *
names_theirs_lower(struct pool *pool, const char *full)
{
    return theirs_split(pool, full, tolower);
}

const char *
names_theirs_upper(struct pool *pool, const char *full)
{
    return theirs_split(pool, full, toupper);
}

const char *
names_theirs_member(struct pool *pool, const char *field)
{
    char *out = pool_printf(pool, "%s", field);

    for (char *at = out; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return names_keyword(out) ? pool_printf(pool, "%s_", out) : out;
}

/* A word begins at a capital behind a small letter or digit, and at the last
 * capital of a row that goes on in small letters. */
static bool
word_begins(const char *name, size_t i)
{
    if (i == 0 || !isupper((unsigned char)name[i]) || name[i - 1] == '_')
        return false;
    return !isupper((unsigned char)name[i - 1]) ||
           islower((unsigned char)name[i + 1]);
}

static char *
split(struct pool *pool, const char *name, int (*letter)(int))
{
    char *out = pool_alloc(pool, 2 * strlen(name) + 1), *at = out;

    for (size_t i = 0; name[i]; i++) {
        if (name[i] == '.') {
            *at++ = '_';
            continue;
        }
        if (word_begins(name, i) && name[i - 1] != '.')
            *at++ = '_';
        *at++ = (char)letter((unsigned char)name[i]);
    }
    return out;
}

const char *
names_snake(struct pool *pool, const char *name)
{
    return split(pool, name, tolower);
}

const char *
names_shout(struct pool *pool, const char *name)
{
    return split(pool, name, toupper);
}

const char *
names_join(struct pool *pool, const char *a, const char *b)
{
    if (!*a || !*b)
        return *a ? a : b;
    return pool_printf(pool, "%s_%s", a, b);
}
