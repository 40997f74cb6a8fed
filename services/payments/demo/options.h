#ifndef DEMO_OPTIONS_H
#define DEMO_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The command line of the demo. */
struct demo_options {
    unsigned calls;   /* --calls; 2,000 */
    unsigned clients; /* --clients; 8 */
    unsigned kills;   /* --kills; 5 */
    uint64_t seed;    /* --seed; of the clock */
    bool servers;     /* --servers: PostgreSQL, Redis, two processes */
    bool baseline;    /* --baseline: once is off */
    bool keep;        /* --keep: the folder with logs and books stays */
};

enum demo_options_result { DEMO_RUN, DEMO_HELP, DEMO_WRONG };

/* Says to stderr what is wrong. */
enum demo_options_result demo_options_parse(struct demo_options *options,
                                            int argc, char **argv);

#endif
