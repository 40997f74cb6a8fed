#include "path.h"

#include <stdbool.h>

static void
step(struct path *path, int number)
{
    if (path->depth < PATH_MAX_DEPTH) /* else: the thing around it will do */
        path->at[path->depth++] = number;
}

struct path
path_into(const struct path *path, int number, size_t index)
{
    struct path inner = *path;

    step(&inner, number);
    step(&inner, (int)index);
    return inner;
}

struct path
path_option(const struct path *path, int number)
{
    struct path inner = *path;

    step(&inner, number);
    return inner;
}

static bool
encloses(const location_proto *location, const struct path *path)
{
    if (location->n_path > path->depth)
        return false;
    for (size_t i = 0; i < location->n_path; i++)
        if (location->path[i] != path->at[i])
            return false;
    return true;
}

const location_proto *
path_location(const file_proto *file, const struct path *path)
{
    const location_proto *best = NULL;

    if (!file->source_code_info)
        return NULL;
    for (size_t i = 0; i < file->source_code_info->n_location; i++) {
        const location_proto *location = file->source_code_info->location[i];

        if (!encloses(location, path))
            continue;
        if (!best || location->n_path > best->n_path)
            best = location;
    }
    return best;
}

const char *
path_comment(const file_proto *file, const struct path *path)
{
    const location_proto *location = path_location(file, path);

    if (!location || location->n_path != path->depth)
        return NULL;
    return location->leading_comments ? location->leading_comments
                                      : location->trailing_comments;
}
