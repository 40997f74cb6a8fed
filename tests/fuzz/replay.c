#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In place of libFuzzer: each file of the folders that are named, once. Fails
 * when a folder cannot be read or has none. */

/* An exact copy on the heap: a byte read too far is seen by the sanitizers. */
static bool
replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    long size;
    bool read;

    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    bytes = malloc(size > 0 ? (size_t)size : 1);
    read = bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (read)
        (void)LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
    return read;
}

static int
replay_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, alphasort), replayed = 0;

    for (int i = 0; i < n; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            printf("%s\n", path);
            fflush(stdout); /* the last one named is the one that crashed */
            replayed += replay(path);
        }
        free(entries[i]);
    }
    free(entries);
    return replayed;
}

int
main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (replay_folder(argv[i]) == 0) {
            fprintf(stderr, "%s: nothing to replay\n", argv[i]);
            return 1;
        }
    return argc > 1 ? 0 : 1;
}
