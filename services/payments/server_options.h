#ifndef PAYMENTS_SERVER_OPTIONS_H
#define PAYMENTS_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The command line of payments_server; the texts are argv's. */
struct server_options {
    const char *listen;   /* --listen */
    const char *sqlite;   /* --sqlite: a file … */
    const char *postgres; /* --postgres: … or a conninfo */
    const char *redis;    /* --redis: a URL; with postgres only */
    const char *secret;   /* $PAYMENTS_SECRET: signs what Redis keeps */
    const char *provider; /* --provider: a socket's path */
    const char *tokens;   /* --tokens: a file of them */
    bool no_once;         /* --no-once: the baseline */
    unsigned accounts;    /* --create-accounts: "account-0" … */
    int64_t balance;      /* --balance: of each of them */
};

enum server_options_result {
    SERVER_OPTIONS_RUN,
    SERVER_OPTIONS_HELP,  /* said what there is to say */
    SERVER_OPTIONS_WRONG, /* said what is wrong, to stderr */
};

enum server_options_result server_options_parse(struct server_options *options,
                                                int argc, char **argv);

#endif
