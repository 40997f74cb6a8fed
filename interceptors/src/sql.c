#include "sql.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const commands[] = {
    "ABORT",   "BEGIN",    "COMMIT",    "END",
    "RELEASE", "ROLLBACK", "SAVEPOINT", "START",
};

/* What they do stays in the session, or may: nobody reads a DO's text. */
static const char *const lasting[] = {
    "DEALLOCATE", "DECLARE", "DISCARD", "DO",  "LISTEN",
    "LOAD",       "PREPARE", "RESET",   "SET", "UNLISTEN",
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

/* The next word or sign; at its NUL when there is none. */
static const char *
next_token(const char *at, bool nested)
{
    size_t size = word_size(at);

    if (*at)
        at += size > 0 ? size : 1;
    return skip_blank(at, nested);
}

/* TABLE temp.x, "pg_temp".x: behind what may stand before a name. */
static bool
names_temporary(const char *at, bool nested)
{
    static const char *const before[] = {
        "EXISTS", "IF",     "INDEX",    "NOT",  "SEQUENCE",
        "TABLE",  "UNIQUE", "UNLOGGED", "VIEW", "VIRTUAL",
    };

    while (word_in(at, before, sizeof before / sizeof *before))
        at = next_token(at, nested);
    if (strchr("\"[`", *at) && *at)
        at++;
    if (!word_is(at, "temp") && strncasecmp(at, "pg_temp", 7) != 0)
        return false;
    at += word_size(at);
    if (strchr("\"]`", *at) && *at)
        at++;
    return *skip_blank(at, nested) == '.';
}

/* Something that no other connection sees. */
static bool
creates_temporary(const char *sql, bool nested)
{
    const char *first = skip_blank(sql, nested);
    const char *second = next_token(first, nested);

    return word_is(first, "CREATE") &&
           (word_in(second, temporary, sizeof temporary / sizeof *temporary) ||
            names_temporary(second, nested));
}

/* … and that outlives its transaction. */
static bool
creates_lasting(const char *sql, bool nested)
{
    return creates_temporary(sql, nested) && !strcasestr(sql, "ON COMMIT DROP");
}

/* SELECT … INTO TEMP x, which is no INSERT INTO temp. */
static bool
selects_into_temporary(const char *sql)
{
    const char *at = skip_blank(sql, true), *before = at;

    for (; *at; before = at, at = next_token(at, true)) {
        const char *next = next_token(at, true);

        if (word_is(at, "INTO") && !word_is(before, "INSERT") &&
            !word_is(before, "MERGE") &&
            word_in(next, temporary, sizeof temporary / sizeof *temporary))
            return true;
    }
    return false;
}

bool
sql_changes_session(const char *sql)
{
    const char *first = skip_blank(sql, true);
    const char *second = next_token(first, true);

    if (word_is(first, "SET"))
        return !word_in(second, passing, sizeof passing / sizeof *passing);
    return word_in(first, lasting, sizeof lasting / sizeof *lasting) ||
           strcasestr(sql, "set_config") || strcasestr(sql, "advisory_lock") ||
           creates_lasting(sql, true) ||
           (strcasestr(sql, "temp") && selects_into_temporary(sql));
}

bool
sql_changes_transaction(const char *sql)
{
    return word_is(skip_blank(sql, true), "SET") ||
           creates_temporary(sql, true) || sql_changes_session(sql);
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

    if (creates_lasting(sql, false))
        return true;
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
