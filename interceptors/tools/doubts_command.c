#include "doubts_command.h"

#include "place.h"

#include <idem/operator.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIMIT 100
#define LIMIT_MAX 1000000
#define EXIT_NOT_WELL 1
#define EXIT_USAGE 2

const char doubts_usage[] =
    "  doubts        the keys that nobody runs by himself any more: in doubt,\n"
    "                with a lease that is over, or failed for good\n"
    "    --postgres CONNINFO or --sqlite FILE, --limit N (100)\n"
    "    Exits 0 when there is none. It reads every record there is.\n";

struct options {
    const char *postgres, *sqlite;
    unsigned limit;
};

struct list {
    unsigned told;
};

static int
complain(const char *what)
{
    fprintf(stderr, "idemctl doubts: %s\n", what);
    return EXIT_USAGE;
}

static int
complain_of_option(const char *word)
{
    fprintf(stderr, "idemctl doubts: %s: no such option, or no value\n", word);
    return EXIT_USAGE;
}

static bool
take_limit(struct options *options)
{
    char *end;
    long limit;

    errno = 0;
    limit = strtol(optarg, &end, 10);
    if (errno || end == optarg || *end || limit < 1 || limit > LIMIT_MAX)
        return false;
    options->limit = (unsigned)limit;
    return true;
}

/* The exit code; 0: go on. */
static int
parse(struct options *options, int argc, char **argv)
{
    static const struct option table[] = {
        {"postgres", required_argument, NULL, 'p'},
        {"sqlite", required_argument, NULL, 's'},
        {"limit", required_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    int option;

    *options = (struct options){.limit = LIMIT};
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 'p')
            options->postgres = optarg;
        else if (option == 's')
            options->sqlite = optarg;
        else if (option != 'l')
            return complain_of_option(argv[optind - 1]);
        else if (!take_limit(options))
            return complain("--limit is not from 1 to 1000000");
    }
    if (optind < argc)
        return complain("it takes options only");
    if (!options->postgres == !options->sqlite)
        return complain("one of --postgres and --sqlite is wanted");
    return 0;
}

static void
print(void *with, const struct idem_operator_doubt *doubt)
{
    struct list *list = with;
    time_t seconds = (time_t)(doubt->first_at_ms / 1000);
    struct tm utc;
    char first[32];

    gmtime_r(&seconds, &utc);
    strftime(first, sizeof first, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (list->told++ == 0)
        printf("%-6s  %-20s  %4s  %s\n", "state", "first", "runs",
               "method tenant key step");
    printf("%-6s  %-20s  %4lld  %s %.*s %s %s\n", doubt->state, first,
           (long long)doubt->executions, doubt->scope,
           doubt->tenant.size ? (int)doubt->tenant.size : 1,
           doubt->tenant.size ? (const char *)doubt->tenant.data : "-",
           doubt->key, doubt->step[0] ? doubt->step : "-");
}

int
doubts_command_run(int argc, char **argv)
{
    struct options options;
    struct list list = {0};
    struct idem_store *store = NULL;
    struct idem_error err;
    bool more = false;
    int code = parse(&options, argc, argv);
    enum idem_status status;

    if (code)
        return code;
    status = place_open(&store, options.postgres, options.sqlite, &err);
    if (status == IDEM_OK)
        status = idem_operator_doubts(store, options.limit, print, &list, &more,
                                      &err);
    idem_store_free(store);
    if (status != IDEM_OK) {
        fprintf(stderr, "idemctl doubts: %s: %s\n", idem_status_name(status),
                err.message);
        return EXIT_NOT_WELL;
    }
    if (more)
        printf("and more: --limit\n");
    return list.told ? EXIT_NOT_WELL : 0;
}
