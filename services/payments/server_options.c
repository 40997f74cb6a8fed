#include "server_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_MIN 16 /* bytes */
#define ACCOUNTS_MAX 100000

static const char usage[] =
    "usage: payments_server [options]\n"
    "  --listen ADDRESS       tcp://127.0.0.1:7070 is the default\n"
    "  --sqlite FILE          keep the books in this file\n"
    "  --postgres CONNINFO    or in this database, after idemctl migrate and\n"
    "                         services/payments/schema.sql\n"
    "  --redis URL            in front of PostgreSQL; its entries are signed\n"
    "                         with $PAYMENTS_SECRET, 16 bytes or more\n"
    "  --provider SOCKET      who makes payouts\n"
    "  --tokens FILE          whose they are, and their roles\n"
    "  --create-accounts N    account-0 to account-(N-1), unless they exist\n"
    "  --balance AMOUNT       of each of them; 0 is the default\n"
    "  --no-once              forget every key: for comparison, never in "
    "earnest\n"
    "  --help\n";

enum {
    LISTEN = 1,
    SQLITE,
    POSTGRES,
    REDIS,
    PROVIDER,
    TOKENS,
    ACCOUNTS,
    BALANCE,
    NO_ONCE,
    HELP,
};

static const struct option table[] = {
    {"listen", required_argument, NULL, LISTEN},
    {"sqlite", required_argument, NULL, SQLITE},
    {"postgres", required_argument, NULL, POSTGRES},
    {"redis", required_argument, NULL, REDIS},
    {"provider", required_argument, NULL, PROVIDER},
    {"tokens", required_argument, NULL, TOKENS},
    {"create-accounts", required_argument, NULL, ACCOUNTS},
    {"balance", required_argument, NULL, BALANCE},
    {"no-once", no_argument, NULL, NO_ONCE},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static bool
wrong(const char *what)
{
    fprintf(stderr, "payments_server: %s (--help tells more)\n", what);
    return false;
}

static bool
read_number(int64_t *number, const char *text, int64_t max, const char *what)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > max)
        return wrong(what);
    *number = value;
    return true;
}

static bool
wrong_option(const char *word)
{
    fprintf(stderr,
            "payments_server: %s: no such option, or no value (--help tells "
            "more)\n",
            word);
    return false;
}

static bool
take(struct server_options *options, int option, const char *word)
{
    int64_t accounts;

    switch (option) {
    case LISTEN:
        options->listen = optarg;
        return true;
    case SQLITE:
        options->sqlite = optarg;
        return true;
    case POSTGRES:
        options->postgres = optarg;
        return true;
    case REDIS:
        options->redis = optarg;
        return true;
    case PROVIDER:
        options->provider = optarg;
        return true;
    case TOKENS:
        options->tokens = optarg;
        return true;
    case NO_ONCE:
        options->no_once = true;
        return true;
    case BALANCE:
        return read_number(&options->balance, optarg, INT64_MAX / 2,
                           "--balance wants an amount");
    case ACCOUNTS:
        if (!read_number(&accounts, optarg, ACCOUNTS_MAX,
                         "--create-accounts wants a number up to 100000"))
            return false;
        options->accounts = (unsigned)accounts;
        return true;
    default:
        return wrong_option(word);
    }
}

static bool
check(const struct server_options *options)
{
    if (!options->sqlite == !options->postgres)
        return wrong("say --sqlite or --postgres, one of the two");
    if (options->redis && !options->postgres)
        return wrong("--redis stands in front of --postgres");
    if (options->redis &&
        (!options->secret || strlen(options->secret) < SECRET_MIN))
        return wrong("--redis wants a secret of 16 bytes or more in the "
                     "environment, PAYMENTS_SECRET");
    return true;
}

enum server_options_result
server_options_parse(struct server_options *options, int argc, char **argv)
{
    int option;

    *options = (struct server_options){.listen = "tcp://127.0.0.1:7070",
                                       .secret = getenv("PAYMENTS_SECRET")};
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == HELP) {
            fputs(usage, stdout);
            return SERVER_OPTIONS_HELP;
        }
        if (!take(options, option, argv[optind - 1]))
            return SERVER_OPTIONS_WRONG;
    }
    if (optind < argc) {
        wrong("there are words behind the options");
        return SERVER_OPTIONS_WRONG;
    }
    return check(options) ? SERVER_OPTIONS_RUN : SERVER_OPTIONS_WRONG;
}
