#ifndef FILE_H
#define FILE_H

#include <stddef.h>

/* The whole text of a file, NUL-terminated, on the heap; NULL when there is
 * none. */
char *file_read(const char *path);

/* What a shell command writes to both of its outputs, on the heap; never NULL.
 */
char *file_command(const char *command);

/* The value of an environment variable that the tests are run with. */
const char *file_dir(const char *variable);

#endif
