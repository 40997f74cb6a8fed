#ifndef PATH_H
#define PATH_H

#include "proto.h"

/* Where a thing stands in its file: field numbers and indexes from the file
 * descriptor inward, as SourceCodeInfo has them. */

#define PATH_MAX_DEPTH 80

struct path {
    int at[PATH_MAX_DEPTH];
    unsigned depth;
};

/* path, then a field's number and an index in it. */
struct path path_into(const struct path *path, int number, size_t index);

/* path, then a number alone: the way into options. */
struct path path_option(const struct path *path, int number);

/* The location of the path, or of the nearest thing around it that has one;
 * NULL without source information. */
const location_proto *path_location(const file_proto *file,
                                    const struct path *path);

/* The words that stand before a thing, or behind it; NULL without any. */
const char *path_comment(const file_proto *file, const struct path *path);

#endif
