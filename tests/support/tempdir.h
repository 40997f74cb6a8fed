#ifndef TEMPDIR_H
#define TEMPDIR_H

#include <stdbool.h>

#define TEMPDIR_MAX 96

/* A folder of a test's own in $TMPDIR, or /tmp. Those of tests that died are
 * removed by the next one. */
struct tempdir {
    char path[TEMPDIR_MAX];
};

void tempdir_open(struct tempdir *dir);

/* Removes it with all that is in it. */
void tempdir_close(struct tempdir *dir);

/* Writes the path of a file in it into path, which is returned. */
char *tempdir_file(const struct tempdir *dir, const char *name, char *path,
                   unsigned size);

/* $TMPDIR or /tmp. */
const char *tempdir_root(void);

/* Remove a folder with all that is in it; no error when it is not there. */
void tempdir_remove(const char *path);

#endif
