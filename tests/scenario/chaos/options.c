#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: chaos [--seconds N] [--keys N] [--clients N] [--seed N]\n"
    "             [--break outside]\n";

static bool
read_number(uint64_t *number, const char *text, uint64_t max)
{
    char *end;

    *number = strtoull(text, &end, 10);
    return *text && !*end && *number >= 1 && *number <= max;
}

static bool
take(struct chaos_options *options, const char *name, const char *value)
{
    uint64_t number;

    if (strcmp(name, "--break") == 0) {
        options->outside = strcmp(value, "outside") == 0;
        return options->outside;
    }
    if (!read_number(&number, value, UINT64_MAX))
        return false;
    if (strcmp(name, "--seed") == 0)
        options->seed = number;
    else if (strcmp(name, "--seconds") == 0 && number <= 86400)
        options->seconds = (unsigned)number;
    else if (strcmp(name, "--keys") == 0 && number <= 10000000)
        options->keys = (unsigned)number;
    else if (strcmp(name, "--clients") == 0 && number <= 256)
        options->clients = (unsigned)number;
    else
        return false;
    return true;
}

bool
chaos_options_parse(struct chaos_options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && take(options, argv[i], argv[i + 1]))
            continue;
        fprintf(stderr, "chaos: %s %s is no option\n%s", argv[i],
                i + 1 < argc ? argv[i + 1] : "without a value", usage);
        return false;
    }
    return true;
}
