#include "memory.h"

#include <stdio.h>
#include <unistd.h>

#define SLACK_KIB (16 * 1024)

static long
resident_kib(pid_t pid)
{
    char path[64];
    long total = 0, resident = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

void
memory_look(struct memory_watch *watch, const struct site *site,
            bool second_half)
{
    long *most = &watch->half_kib[second_half];

    for (unsigned i = 0; i < SITE_SERVERS; i++) {
        long kib = resident_kib(site->servers[i].pid);

        if (kib > *most)
            *most = kib;
    }
}

bool
memory_is_flat(const struct memory_watch *watch)
{
    long first = watch->half_kib[0], second = watch->half_kib[1];

    printf("most KiB resident in a server, first half %ld, second %ld\n", first,
           second);
    return second <= first + first / 4 + SLACK_KIB;
}
