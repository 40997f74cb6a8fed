#include "support.h"

#include "points.h"

#include <stdio.h>
#include <string.h>

#define LEAST 4

static void
add(struct points *points, const char *name)
{
    unsigned i = 0;

    while (i < points->n && strcmp(points->name[i], name) != 0)
        i++;
    assert_true(i < POINTS_MAX);
    if (i == points->n)
        snprintf(points->name[points->n++], POINT_SIZE, "%s", name);
    points->times[i]++;
}

void
points_read(struct points *points, const char *path)
{
    char line[POINT_SIZE];
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    *points = (struct points){0};
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        add(points, line);
    }
    fclose(file);
    assert_true(points->n >= LEAST);
}
