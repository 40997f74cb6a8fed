#ifndef BOOKS_H
#define BOOKS_H

#include <stdint.h>

/* The number that a statement finds in the first row and column of a database
 * file of sqlite, which others may be writing: waits for them for 10 s. Asserts
 * that there is one. */
int64_t books_ask(const char *path, const char *sql);

#endif
