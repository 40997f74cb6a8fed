#include "arena.h"
#include "seed.h"

#include <stdio.h>
#include <sys/stat.h>

/* Writes what the corpora of the fuzz targets begin with: fuzz_seeds FOLDER. */

int
main(int argc, char **argv)
{
    struct idem_arena *arena = arena_new(4096, 0);

    if (argc != 2 || !arena) {
        fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 1;
    }
    seed_folder = argv[1];
    mkdir(seed_folder, 0777);
    seed_wire(arena);
    seed_messages(arena);
    seed_options();
    seed_redis(arena);
    seed_texts();
    arena_free(arena);
    return 0;
}
