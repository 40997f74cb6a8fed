#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char usage[] =
    "usage: demo [options]\n"
    "Clients charge and pay out, each call is repeated, answers are lost and\n"
    "the server is killed; then every unit of money is counted. Exits with 0\n"
    "when each call took effect once, 1 when one did not, 2 when the demo\n"
    "itself could not be set up.\n"
    "  --servers      on private PostgreSQL and Redis, with two servers\n"
    "  --baseline     with once switched off: shows what it is for\n"
    "  --calls N      2000 is the default\n"
    "  --clients N    8\n"
    "  --kills N      5: how often a server dies by SIGKILL\n"
    "  --seed N       repeat a run's dice\n"
    "  --keep         leave logs and books behind\n";

enum { SERVERS = 1, BASELINE, CALLS, CLIENTS, KILLS, SEED, KEEP, HELP };

static const struct option table[] = {
    {"servers", no_argument, NULL, SERVERS},
    {"baseline", no_argument, NULL, BASELINE},
    {"calls", required_argument, NULL, CALLS},
    {"clients", required_argument, NULL, CLIENTS},
    {"kills", required_argument, NULL, KILLS},
    {"seed", required_argument, NULL, SEED},
    {"keep", no_argument, NULL, KEEP},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static bool
read_count(unsigned *count, unsigned min, unsigned max)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(optarg, &end, 10);
    if (errno || end == optarg || *end || value < min || value > max) {
        fprintf(stderr, "demo: %s is not from %u to %u\n", optarg, min, max);
        return false;
    }
    *count = (unsigned)value;
    return true;
}

static bool
take(struct demo_options *options, int option, const char *word)
{
    unsigned seed;

    switch (option) {
    case SERVERS:
        options->servers = true;
        return true;
    case BASELINE:
        options->baseline = true;
        return true;
    case KEEP:
        options->keep = true;
        return true;
    case CALLS:
        return read_count(&options->calls, 1, 1000000);
    case CLIENTS:
        return read_count(&options->clients, 1, 64);
    case KILLS:
        return read_count(&options->kills, 0, 1000);
    case SEED:
        if (!read_count(&seed, 0, UINT32_MAX))
            return false;
        options->seed = seed;
        return true;
    default:
        fprintf(stderr, "demo: %s: no such option, or no value (--help)\n",
                word);
        return false;
    }
}

enum demo_options_result
demo_options_parse(struct demo_options *options, int argc, char **argv)
{
    int option;

    *options = (struct demo_options){
        .calls = 2000,
        .clients = 8,
        .kills = 5,
        .seed = (uint64_t)time(NULL) & UINT32_MAX,
    };
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == HELP) {
            fputs(usage, stdout);
            return DEMO_HELP;
        }
        if (!take(options, option, argv[optind - 1]))
            return DEMO_WRONG;
    }
    if (optind == argc)
        return DEMO_RUN;
    fprintf(stderr, "demo: what is \"%s\"? (--help)\n", argv[optind]);
    return DEMO_WRONG;
}
