#ifndef WORD_LINES_H
#define WORD_LINES_H

#include <idem/status.h>

/* Text of lines, each of words with blanks between; empty lines and those that
 * begin with # are none. */

struct word_lines {
    struct idem_bytes rest;
    unsigned line; /* the number of the last, from 1 */
};

/* The next line that has words, without its end; false: there is none. */
bool word_lines_next(struct word_lines *lines, struct idem_bytes *line);

/* Its next word, taken off; false: there is none. */
bool word_next(struct idem_bytes *line, struct idem_bytes *word);

/* The words with commas between: "a,b,c"; each in turn, maybe empty. */
bool word_next_of_list(struct idem_bytes *list, struct idem_bytes *word);

/* A copy with a NUL behind it, to be freed. */
char *word_copy(struct idem_bytes word);

/* 1 to IDEM_IDENTITY_MAX bytes of 0x21..0x7E. */
bool word_is_name(struct idem_bytes word);

#endif
