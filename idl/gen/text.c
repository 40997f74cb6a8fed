#include "text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void
reserve(struct text *text, size_t more)
{
    size_t room = text->room ? text->room : 4096;

    while (room < text->size + more)
        room *= 2;
    if (room == text->room)
        return;
    text->at = pool_grow(text->pool, text->at, text->size, room);
    text->room = room;
}

void
text_add(struct text *text, const char *format, ...)
{
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    reserve(text, (size_t)size + 1);
    va_start(args, format);
    vsnprintf(text->at + text->size, (size_t)size + 1, format, args);
    va_end(args);
    text->size += (size_t)size;
}

static bool
blank(const char *words)
{
    return !words || strspn(words, " \t\r\n") == strlen(words);
}

/* One line of the comment; an end of comment inside gets a space. */
static void
comment_line(struct text *text, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool end = i > 0 && from[i - 1] == '*' && from[i] == '/';
        bool begin = i > 0 && from[i - 1] == '/' && from[i] == '*';

        text_add(text, end || begin ? " %c" : "%c", from[i]);
    }
}

void
text_comment(struct text *text, const char *indent, const char *words)
{
    const char *end;

    if (blank(words))
        return;
    end = words + strlen(words);
    while (strchr(" \t\r\n", end[-1]))
        end--;
    text_add(text, "%s/*", indent);
    while (words < end) {
        size_t line = strcspn(words, "\n");

        if (words + line > end)
            line = (size_t)(end - words);
        if (line > 0 && *words != ' ')
            text_add(text, " ");
        comment_line(text, words, line);
        words += line;
        if (words < end) {
            words++;
            text_add(text, "\n%s *", indent);
        }
    }
    text_add(text, " */\n");
}
