#include "key_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MAX_MS 86400000 /* a day */

const char key_usage[] =
    "  resolve KEY   what became of the call with that key?\n"
    "  abandon KEY   it shall never run, if it has not\n"
    "  settle KEY    it is in doubt, and you have found out:\n"
    "    --took-effect [--reply FILE] [--status NAME] [--message TEXT]\n"
    "                the recorded answer; FILE is the reply in protobuf "
    "bytes.\n"
    "                Without one: ALREADY_EXISTS, the reply is not known\n"
    "    --no-effect the call may be tried again\n"
    "    --why TEXT [--by NAME]   for the audit; NAME is yours if not given\n"
    "  each with --method PACKAGE.SERVICE/METHOD and where to ask; a database\n"
    "  does not know the methods, so spell it well, and say the alias or the\n"
    "  key group of a method that has one (\"group:NAME\"):\n"
    "    --server ADDRESS         not for settle; the tenant is the caller's\n"
    "    --postgres CONNINFO or --sqlite FILE, and --tenant NAME if there is "
    "one\n"
    "    --timeout-ms MS          10000\n";

enum {
    METHOD = 1,
    TENANT,
    SERVER,
    POSTGRES,
    SQLITE,
    TIME,
    TOOK_EFFECT,
    NO_EFFECT,
    STATUS,
    MESSAGE,
    REPLY,
    BY,
    WHY
};

static const struct option table[] = {
    {"method", required_argument, NULL, METHOD},
    {"tenant", required_argument, NULL, TENANT},
    {"server", required_argument, NULL, SERVER},
    {"postgres", required_argument, NULL, POSTGRES},
    {"sqlite", required_argument, NULL, SQLITE},
    {"timeout-ms", required_argument, NULL, TIME},
    {"took-effect", no_argument, NULL, TOOK_EFFECT},
    {"no-effect", no_argument, NULL, NO_EFFECT},
    {"status", required_argument, NULL, STATUS},
    {"message", required_argument, NULL, MESSAGE},
    {"reply", required_argument, NULL, REPLY},
    {"by", required_argument, NULL, BY},
    {"why", required_argument, NULL, WHY},
    {NULL, 0, NULL, 0},
};

static bool
complain(const struct key_options *options, const char *what)
{
    fprintf(stderr, "idemctl %s: %s\n", options->command, what);
    return false;
}

/* Where the text of an option goes; NULL when it is none. */
static const char **
text_of(struct key_options *options, int option)
{
    switch (option) {
    case METHOD:
        return &options->method;
    case TENANT:
        return &options->tenant;
    case SERVER:
        return &options->server;
    case POSTGRES:
        return &options->postgres;
    case SQLITE:
        return &options->sqlite;
    case MESSAGE:
        return &options->message;
    case REPLY:
        return &options->reply;
    case BY:
        return &options->by;
    case WHY:
        return &options->why;
    default:
        return NULL;
    }
}

static bool
take_time(struct key_options *options)
{
    char *end;

    errno = 0;
    options->timeout_ms = strtoll(optarg, &end, 10);
    if (errno || end == optarg || *end || options->timeout_ms <= 0 ||
        options->timeout_ms > TIMEOUT_MAX_MS)
        return complain(options, "--timeout-ms is not from 1 to 86400000");
    return true;
}

static bool
complain_of_option(const struct key_options *options, const char *word)
{
    fprintf(stderr, "idemctl %s: %s: no such option, or no value\n",
            options->command, word);
    return false;
}

static bool
take(struct key_options *options, int option, const char *word)
{
    const char **text = text_of(options, option);

    if (text) {
        *text = optarg;
        return true;
    }
    switch (option) {
    case TOOK_EFFECT:
        options->took_effect = true;
        return true;
    case NO_EFFECT:
        options->no_effect = true;
        return true;
    case TIME:
        return take_time(options);
    case STATUS:
        options->has_status = true;
        return idem_status_parse(optarg, &options->status) ||
               complain(options, "--status is no name of a status");
    default:
        return complain_of_option(options, word);
    }
}

static bool
check_settle(const struct key_options *options)
{
    bool answer = options->reply || options->has_status || options->message;

    if (strcmp(options->command, "settle") != 0)
        return true;
    if (options->server)
        return complain(options,
                        "not through a server: --postgres or --sqlite");
    if (options->took_effect == options->no_effect)
        return complain(options, "either --took-effect or --no-effect");
    if (options->no_effect && answer)
        return complain(options, "an answer is for --took-effect");
    if (options->reply && options->has_status && options->status != IDEM_OK)
        return complain(options, "a reply is for status OK");
    if (!options->why || !options->why[0])
        return complain(options, "--why is for the audit, and wanted");
    if (!options->by || !options->by[0])
        return complain(options, "--by: who are you?");
    return true;
}

static bool
check(const struct key_options *options)
{
    int places = !!options->server + !!options->postgres + !!options->sqlite;

    if (!options->key)
        return complain(options, "which KEY?");
    if (!options->method)
        return complain(options, "--method is wanted");
    if (places != 1)
        return complain(options,
                        "one of --server, --postgres and --sqlite is wanted");
    if (options->server && options->tenant[0])
        return complain(options, "the server knows the tenant by itself");
    return check_settle(options);
}

bool
key_options_parse(struct key_options *options, int argc, char **argv)
{
    int option;

    *options = (struct key_options){
        .command = argv[0],
        .tenant = "",
        .timeout_ms = 10000,
        .by = getenv("USER"),
    };
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
        if (!take(options, option, argv[optind - 1]))
            return false;
    if (argc - optind > 1)
        return complain(options, "one KEY only");
    options->key = argv[optind];
    return check(options);
}
