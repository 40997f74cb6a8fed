#include "file.h"

#include <stdio.h>
#include <stdlib.h>

static char *
drain(FILE *from)
{
    size_t size = 0, room = 1 << 16, got;
    char *text = malloc(room);

    while (text && (got = fread(text + size, 1, room - size - 1, from)) > 0) {
        size += got;
        if (size + 1 == room) {
            char *more = realloc(text, room *= 2);

            if (!more)
                abort();
            text = more;
        }
    }
    if (!text)
        abort();
    text[size] = 0;
    return text;
}

char *
file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text;

    if (!file)
        return NULL;
    text = drain(file);
    fclose(file);
    return text;
}

char *
file_command(const char *command)
{
    char line[4096];
    FILE *pipe;
    char *text;

    snprintf(line, sizeof(line), "{ %s ; } 2>&1", command);
    pipe = popen(line, "r");
    if (!pipe)
        abort();
    text = drain(pipe);
    pclose(pipe);
    return text;
}

const char *
file_dir(const char *variable)
{
    const char *value = getenv(variable);

    if (!value) {
        fprintf(stderr, "run me with ctest: %s is not set\n", variable);
        exit(1);
    }
    return value;
}
