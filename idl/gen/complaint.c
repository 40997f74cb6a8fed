#include "complaint.h"

#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
by_place(const void *left, const void *right)
{
    const struct complaint *a = left, *b = right;
    int files = strcmp(a->file, b->file);

    if (files)
        return files;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    return strcmp(a->text, b->text);
}

void
complain(struct complaints *complaints, const file_proto *file,
         const struct path *path, const char *format, ...)
{
    const location_proto *location = path_location(file, path);
    struct complaint new = {.file = file->name, .line = 1, .column = 1};
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    new.text = pool_printf(complaints->pool, "%s", text);
    if (location && location->n_span >= 3) {
        new.line = location->span[0] + 1;
        new.column = location->span[1] + 1;
    }
    for (size_t i = 0; i < complaints->count; i++)
        if (!by_place(&complaints->at[i], &new))
            return;
    complaints->at = pool_grow(complaints->pool, complaints->at,
                               complaints->count * sizeof(new),
                               (complaints->count + 1) * sizeof(new));
    complaints->at[complaints->count++] = new;
}

const char *
complaints_text(struct complaints *complaints)
{
    struct text text = {.pool = complaints->pool};

    if (complaints->count)
        qsort(complaints->at, complaints->count, sizeof(*complaints->at),
              by_place);
    for (size_t i = 0; i < complaints->count; i++) {
        const struct complaint *c = &complaints->at[i];

        text_add(&text, "%s%s:%d:%d: %s", i ? "\n" : "", c->file, c->line,
                 c->column, c->text);
    }
    return text.at ? text.at : "";
}
