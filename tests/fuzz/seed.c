#include "seed.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *seed_folder;

void
seed_add(struct seed *seed, const void *bytes, size_t size)
{
    IDEM_ASSERT(size <= SEED_ROOM - seed->size);
    if (size > 0)
        memcpy(seed->bytes + seed->size, bytes, size);
    seed->size += size;
}

struct seed
seed_begin(uint8_t how)
{
    struct seed seed = {.size = 0};

    seed_add(&seed, &how, 1);
    return seed;
}

void
seed_save(const struct seed *seed, const char *target, const char *name)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", seed_folder, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", seed_folder, target, name);
    file = fopen(path, "wb");
    IDEM_ASSERT(file);
    IDEM_ASSERT(fwrite(seed->bytes, 1, seed->size, file) == seed->size);
    IDEM_ASSERT(fclose(file) == 0);
}

void
seed_save_text(const char *target, const char *name, const char *text)
{
    struct seed seed = {.size = 0};

    seed_add(&seed, text, strlen(text));
    seed_save(&seed, target, name);
}

void
seed_save_choice(const char *target, const char *name, uint8_t how,
                 const char *text)
{
    struct seed seed = seed_begin(how);

    seed_add(&seed, text, strlen(text));
    seed_save(&seed, target, name);
}

struct idem_metadata
seed_two_entries(struct idem_arena *arena)
{
    struct idem_metadata metadata = {0};

    IDEM_ASSERT(idem_metadata_add(&metadata, arena, idem_bytes_of("trace"),
                                  idem_bytes_of("1-2"), NULL) == IDEM_OK);
    IDEM_ASSERT(idem_metadata_add(&metadata, arena, idem_bytes_of("b-bin"),
                                  idem_bytes_of("\x01\xff"), NULL) == IDEM_OK);
    return metadata;
}
