#include "store_postgres_sql.h"

#include <idem/digest.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the marks of the templates mean. @record, @day: the tables with their
 * schema. @columns, @values, @dropped: what opaque keys have beyond the others.
 * @each($1::uuid): a parameter of a statement for many keys, which is an array,
 * or of one for a single key. */

#define MS(time) "floor(extract(epoch FROM " time ") * 1000)::bigint"
#define IN_MS(ms) "clock_timestamp() + " ms " * interval '1 ms'"
#define EACH "@each("

static const struct {
    const char *mark, *minted, *opaque;
} marks[] = {
    {"@record", "%s.idem_record", "%s.idem_record_opaque"},
    {"@day", "%s.idem_day", "%s.idem_day"},
    {"@session", "%s.idem_session", "%s.idem_session"},
    {"@settlement", "%s.idem_settlement", "%s.idem_settlement"},
    {"@columns", "", ", reap_at, gone_at"},
    {"@values", "",
     ", clock_timestamp() + $8::bigint * interval '1 ms', "
     "clock_timestamp() + $8::bigint * interval '1 ms' + interval '400 days'"},
    {"@kept_each", "",
     ", " IN_MS("one.ends") ", " IN_MS("one.ends") " + interval '400 days'"},
    {"@kept", "",
     ", reap_at = clock_timestamp() + $11::bigint * interval '1 ms', "
     "gone_at = greatest(gone_at, clock_timestamp() + "
     "$11::bigint * interval '1 ms' + interval '400 days')"},
    {"@never", "", ", 'infinity', 'infinity'"},
    {"@begins_each",
     "WHERE clock_timestamp() < timestamptz 'epoch' + "
     "one.ends * interval '1 ms'",
     ""},
    {"@in_time",
     "AND 1 / (clock_timestamp() < timestamptz 'epoch' + "
     "one.ends * interval '1 ms')::int = 1",
     ""},
    {"@begins", "$8::bigint > " MS("clock_timestamp()"),
     "$8::bigint IS NOT NULL"},
    {"@late",
     "one.ends <= " MS("clock_timestamp()") " OR NOT EXISTS (SELECT FROM "
                                            "%s.idem_day AS d WHERE d.day = "
                                            "one.day AND d.open)",
     "one.ends < one.day"},
    {"@dropped", "false", "r.reap_at = r.gone_at"},
};

static const char *
meaning_of(const char *at, bool opaque, size_t *length)
{
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        *length = strlen(marks[i].mark);
        if (strncmp(at, marks[i].mark, *length) == 0)
            return opaque ? marks[i].opaque : marks[i].minted;
    }
    IDEM_ASSERT(!"a mark without a meaning");
    return "";
}

/* "%s" in a meaning stands for the schema. */
static void
put_meaning(FILE *out, const char *meaning, const char *schema)
{
    const char *hole = strstr(meaning, "%s");

    if (!hole) {
        fputs(meaning, out);
        return;
    }
    fwrite(meaning, 1, (size_t)(hole - meaning), out);
    fputs(schema, out);
    fputs(hole + 2, out);
}

/* From behind its "(" to behind its ")". */
static const char *
put_parameter(FILE *out, const char *at, bool one)
{
    size_t length = strcspn(at, ")");

    fputs(one ? "" : "unnest(", out);
    fwrite(at, 1, length, out);
    fputs(one ? "" : "[])", out);
    return at + length + 1;
}

/* From a mark to behind it. */
static const char *
put_mark(FILE *out, const char *at, const char *schema, bool opaque, bool one)
{
    size_t length;

    if (strncmp(at, EACH, strlen(EACH)) == 0)
        return put_parameter(out, at + strlen(EACH), one);
    put_meaning(out, meaning_of(at, opaque, &length), schema);
    return at + length;
}

static char *
expand(enum statement statement, const char *schema, bool opaque)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    for (const char *at = pg_templates[statement]; *at;) {
        size_t plain = strcspn(at, "@");

        fwrite(at, 1, plain, out);
        at += plain;
        if (*at)
            at = put_mark(out, at, schema, opaque, statement >= SQL_ONE);
    }
    fclose(out);
    return text;
}

static char *
name_of(const char *text)
{
    char *name = NULL;
    uint32_t sum = text ? idem_crc32c(idem_bytes_of(text)) : 0;

    return asprintf(&name, "idem_%08" PRIx32, sum) < 0 ? NULL : name;
}

bool
pg_statements_init(struct statements *statements, const char *schema)
{
    bool ok;

    statements->prepared = calloc(2 * SQL_STATEMENTS, sizeof(bool));
    ok = statements->prepared != NULL;
    for (unsigned i = 0; i < SQL_STATEMENTS; i++) {
        for (int opaque = 0; opaque <= (i >= SQL_OPAQUE ? 1 : 0); opaque++) {
            char *text = expand(i, schema, opaque);

            statements->texts[i][opaque] = text;
            statements->names[i][opaque] = name_of(text);
            ok = ok && text && statements->names[i][opaque];
        }
    }
    return ok;
}

void
pg_statements_fini(struct statements *statements)
{
    for (unsigned i = 0; i < SQL_STATEMENTS; i++) {
        for (int opaque = 0; opaque < 2; opaque++) {
            free(statements->texts[i][opaque]);
            free(statements->names[i][opaque]);
        }
    }
    free(statements->prepared);
    memset(statements, 0, sizeof(*statements));
}
