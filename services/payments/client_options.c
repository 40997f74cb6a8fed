#include "client_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define LIMIT_MAX 1000 /* payments.proto */

const char client_usage[] =
    "usage: payments COMMAND [options]\n"
    "  open      --account NAME --amount BALANCE\n"
    "  charge    --account NAME --amount AMOUNT [--order ID] [--memo TEXT]\n"
    "  transfer  --account NAME --to NAME --amount AMOUNT [--memo TEXT]\n"
    "  payout    --to DESTINATION --amount AMOUNT\n"
    "  account   --account NAME\n"
    "  entries   --account NAME [--after NUMBER] [--limit COUNT]\n"
    "  totals    of all accounts, for an auditor\n"
    "  resolve   --key KEY --method METHOD: what became of that call?\n"
    "  abandon   --key KEY --method METHOD: it shall never run\n"
    "            METHOD is open, charge, transfer or payout\n"
    "each with:\n"
    "  --key KEY         repeat the call of this key; else a new one is made\n"
    "  --server ADDRESS  tcp://127.0.0.1:7070 is the default\n"
    "  --token-file FILE  has the token that says who calls\n"
    "  --timeout-ms MS   of the whole call, its repeats included; 10000\n"
    "It exits with the number of the call's status, 0 is OK; 64 means that "
    "the\n"
    "command line is wrong.\n";

enum {
    KEY = 1,
    METHOD,
    SERVER,
    TOKEN,
    ACCOUNT,
    TARGET,
    ORDER,
    MEMO,
    AMOUNT,
    AFTER,
    LIMIT,
    TIME
};

static const struct option table[] = {
    {"key", required_argument, NULL, KEY},
    {"method", required_argument, NULL, METHOD},
    {"server", required_argument, NULL, SERVER},
    {"token-file", required_argument, NULL, TOKEN},
    {"account", required_argument, NULL, ACCOUNT},
    {"to", required_argument, NULL, TARGET},
    {"order", required_argument, NULL, ORDER},
    {"memo", required_argument, NULL, MEMO},
    {"amount", required_argument, NULL, AMOUNT},
    {"after", required_argument, NULL, AFTER},
    {"limit", required_argument, NULL, LIMIT},
    {"timeout-ms", required_argument, NULL, TIME},
    {NULL, 0, NULL, 0},
};

/* Where the text of an option goes; NULL when it is a number's or unknown. */
static const char **
text_of(struct client_options *options, int option)
{
    switch (option) {
    case KEY:
        return &options->key;
    case METHOD:
        return &options->method;
    case SERVER:
        return &options->server;
    case TOKEN:
        return &options->token;
    case ACCOUNT:
        return &options->account;
    case TARGET:
        return &options->target;
    case ORDER:
        return &options->order;
    case MEMO:
        return &options->memo;
    default:
        return NULL;
    }
}

static int64_t *
number_of(struct client_options *options, int option)
{
    switch (option) {
    case AMOUNT:
        return &options->amount;
    case AFTER:
        return &options->after;
    case LIMIT:
        return &options->limit;
    case TIME:
        return &options->timeout_ms;
    default:
        return NULL;
    }
}

static bool
read_number(int64_t *number, const char *text)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    if (!errno && end != text && !*end)
        return true;
    fprintf(stderr, "payments: \"%s\" is not a number\n", text);
    return false;
}

/* It goes out as a uint32. */
static bool
check_limit(const struct client_options *options)
{
    if (options->limit >= 0 && options->limit <= LIMIT_MAX)
        return true;
    fprintf(stderr, "payments: --limit is from 1 to %d\n", LIMIT_MAX);
    return false;
}

static bool
take(struct client_options *options, int option, const char *word)
{
    const char **text = text_of(options, option);
    int64_t *number = number_of(options, option);

    if (text)
        *text = optarg;
    else if (number)
        return read_number(number, optarg) && check_limit(options);
    else
        fprintf(stderr, "payments: %s: no such option, or no value\n", word);
    return text;
}

bool
client_options_parse(struct client_options *options, int argc, char **argv)
{
    int option;

    *options = (struct client_options){
        .server = "tcp://127.0.0.1:7070",
        .method = "",
        .account = "",
        .target = "",
        .order = "",
        .memo = "",
        .timeout_ms = 10000,
    };
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (!take(options, option, argv[optind - 1]))
            return false;
    }
    if (argc - optind != 1) {
        fputs(client_usage, stderr);
        return false;
    }
    options->command = argv[optind];
    return true;
}
