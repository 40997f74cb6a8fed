#ifndef PAYMENTS_CLIENT_OPTIONS_H
#define PAYMENTS_CLIENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The command line of payments; the texts are argv's, "" when not given. */
struct client_options {
    const char *command; /* "charge" */
    const char *server;  /* --server */
    const char *token;   /* --token-file; NULL: none */
    const char *key;     /* --key; NULL: a new one */
    const char *method;  /* --method */
    const char *account; /* --account */
    const char *target;  /* --to */
    const char *order;   /* --order */
    const char *memo;    /* --memo */
    int64_t amount;      /* --amount */
    int64_t after;       /* --after */
    int64_t limit;       /* --limit */
    int64_t timeout_ms;  /* --timeout-ms */
};

extern const char client_usage[];

/* False: what is wrong is said, to stderr. */
bool client_options_parse(struct client_options *options, int argc,
                          char **argv);

#endif
