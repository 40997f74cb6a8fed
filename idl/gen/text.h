#ifndef TEXT_H
#define TEXT_H

#include "pool.h"

/* Text that grows at its end: what the emitters write. */
struct text {
    struct pool *pool;
    char *at; /* NUL-terminated once something was added */
    size_t size;
    size_t room;
};

void text_add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The words as a C comment, each line behind indent;
 * nothing for NULL or blank words. What would end the comment is broken. */
void text_comment(struct text *text, const char *indent, const char *words);

#endif
