#include "policies.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 640

/* What the program is told. It is said while a config is loaded and told when
 * that is over: who hears it may load the next one. */

struct policy_line {
    struct policy_line *next;
    char text[];
};

void
policies_report(struct policies *policies, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    struct policy_line *line;
    va_list args;

    if (!policies->options.report)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    line = malloc(sizeof *line + strlen(text) + 1);
    IDEM_ASSERT(line);
    line->next = NULL;
    strcpy(line->text, text);
    *policies->last_line = line;
    policies->last_line = &line->next;
}

struct policy_line *
policies_take_lines(struct policies *policies)
{
    struct policy_line *lines = policies->lines;

    policies->lines = NULL;
    policies->last_line = &policies->lines;
    return lines;
}

void
policies_tell(const struct policies *policies, struct policy_line *lines)
{
    for (struct policy_line *next; lines; lines = next) {
        next = lines->next;
        policies->options.report(policies->options.with, lines->text);
        free(lines);
    }
}
