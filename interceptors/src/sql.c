#include "sql.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const commands[] = {
    "ABORT",   "BEGIN",    "COMMIT",    "END",
    "RELEASE", "ROLLBACK", "SAVEPOINT", "START",
};

/* What they do stays in the session. */
static const char *const lasting[] = {
    "DEALLOCATE", "DECLARE", "DISCARD", "LISTEN",   "LOAD",
    "PREPARE",    "RESET",   "SET",     "UNLISTEN",
};

/* SET of these does not. */
static const char *const passing[] = {"CONSTRAINTS", "LOCAL", "TRANSACTION"};

static const char *const temporary[] = {"GLOBAL", "LOCAL", "TEMP", "TEMPORARY"};

/* PREPARE TRANSACTION, SET TRANSACTION; the first word alone is harmless. */
static const char *const preludes[] = {"PREPARE", "SET"};

static const char *
skip_line(const char *at)
{
    return at + strcspn(at, "\n");
}

/* PostgreSQL nests comments, sqlite does not. */
static const char *
skip_block(const char *at, bool nested)
{
    unsigned depth = 1;

    for (at += 2; *at && depth > 0; at++) {
        if (at[0] == '*' && at[1] == '/') {
            depth--;
            at++;
        } else if (nested && at[0] == '/' && at[1] == '*') {
            depth++;
            at++;
        }
    }
    return at;
}

static const char *
skip_blank(const char *at, bool nested)
{
    for (;;) {
        if (isspace((unsigned char)*at) || *at == ';')
            at++;
        else if (at[0] == '-' && at[1] == '-')
            at = skip_line(at);
        else if (at[0] == '/' && at[1] == '*')
            at = skip_block(at, nested);
        else if (strncmp(at, "\xEF\xBB\xBF", 3) == 0)
            at += 3; /* a byte order mark: sqlite skips it */
        else
            return at;
    }
}

static size_t
word_size(const char *at)
{
    size_t size = 0;

    while (isalnum((unsigned char)at[size]) || at[size] == '_')
        size++;
    return size;
}

static bool
word_is(const char *at, const char *word)
{
    size_t size = word_size(at);

    return size == strlen(word) && strncasecmp(at, word, size) == 0;
}

static bool
word_in(const char *at, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (word_is(at, words[i]))
            return true;
    return false;
}

static bool
is_command(const char *sql, bool nested)
{
    const char *at = skip_blank(sql, nested);

    if (word_in(at, commands, sizeof commands / sizeof *commands))
        return true;
    if (!word_in(at, preludes, sizeof preludes / sizeof *preludes))
        return false;
    return word_is(skip_blank(at + word_size(at), nested), "TRANSACTION");
}

bool
sql_is_transaction_command(const char *sql)
{
    return is_command(sql, true) || is_command(sql, false);
}

bool
sql_changes_session(const char *sql)
{
    const char *first = skip_blank(sql, true);
    const char *second = skip_blank(first + word_size(first), true);

    if (word_is(first, "SET"))
        return !word_in(second, passing, sizeof passing / sizeof *passing);
    if (word_is(first, "CREATE") &&
        word_in(second, temporary, sizeof temporary / sizeof *temporary))
        return !strcasestr(second, "ON COMMIT DROP");
    return word_in(first, lasting, sizeof lasting / sizeof *lasting) ||
           strcasestr(sql, "set_config") || strcasestr(sql, "advisory_lock");
}

bool
sql_changes_transaction(const char *sql)
{
    const char *first = skip_blank(sql, true);
    const char *second = skip_blank(first + word_size(first), true);

    return word_is(first, "SET") ||
           (word_is(first, "CREATE") &&
            word_in(second, temporary, sizeof temporary / sizeof *temporary)) ||
           sql_changes_session(sql);
}

/* PRAGMAs that take an argument and only read, or hold for a transaction. */
static const char *const asking[] = {
    "defer_foreign_keys", "foreign_key_check", "foreign_key_list",
    "index_info",         "index_list",        "index_xinfo",
    "integrity_check",    "quick_check",       "table_info",
    "table_list",         "table_xinfo",
};

bool
sql_changes_connection(const char *sql)
{
    static const char *const files[] = {"ATTACH", "DETACH"};
    const char *first = skip_blank(sql, false);
    const char *name = skip_blank(first + word_size(first), false);
    const char *after = skip_blank(name + word_size(name), false);

    if (!word_is(first, "PRAGMA"))
        return word_in(first, files, sizeof files / sizeof *files);
    if (*after == '.') {
        name = skip_blank(after + 1, false);
        after = skip_blank(name + word_size(name), false);
    }
    return *after && !word_in(name, asking, sizeof asking / sizeof *asking);
}

bool
sql_is_blank(const char *sql)
{
    return *skip_blank(sql, false) == '\0';
}
