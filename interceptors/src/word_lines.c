#include "word_lines.h"

#include <idem/auth.h>

#include <stdlib.h>
#include <string.h>

static bool
is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void
skip(struct idem_bytes *bytes, size_t size)
{
    bytes->data += size;
    bytes->size -= size;
}

static void
skip_blanks(struct idem_bytes *bytes)
{
    while (bytes->size > 0 && is_blank(bytes->data[0]))
        skip(bytes, 1);
}

/* What stands before the mark, or all; the mark is taken off, too. */
static struct idem_bytes
take_until(struct idem_bytes *bytes, char mark)
{
    const uint8_t *end = memchr(bytes->data, mark, bytes->size);
    size_t size = end ? (size_t)(end - bytes->data) : bytes->size;
    struct idem_bytes taken = {bytes->data, size};

    skip(bytes, size + (end ? 1 : 0));
    return taken;
}

bool
word_lines_next(struct word_lines *lines, struct idem_bytes *line)
{
    while (lines->rest.size > 0) {
        *line = take_until(&lines->rest, '\n');
        lines->line++;
        skip_blanks(line);
        if (line->size > 0 && line->data[0] != '#')
            return true;
    }
    return false;
}

bool
word_next(struct idem_bytes *line, struct idem_bytes *word)
{
    size_t size = 0;

    skip_blanks(line);
    while (size < line->size && !is_blank(line->data[size]))
        size++;
    *word = (struct idem_bytes){line->data, size};
    skip(line, size);
    return size > 0;
}

bool
word_next_of_list(struct idem_bytes *list, struct idem_bytes *word)
{
    if (list->size == 0)
        return false;
    *word = take_until(list, ',');
    return true;
}

char *
word_copy(struct idem_bytes word)
{
    char *copy = malloc(word.size + 1);

    IDEM_ASSERT(copy);
    memcpy(copy, word.data, word.size);
    copy[word.size] = 0;
    return copy;
}

bool
word_is_name(struct idem_bytes word)
{
    for (size_t i = 0; i < word.size; i++)
        if (word.data[i] < 0x21 || word.data[i] > 0x7E)
            return false;
    return word.size > 0 && word.size <= IDEM_IDENTITY_MAX;
}
