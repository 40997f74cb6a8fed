#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct chaos_options {
    unsigned seconds; /* of harm */
    unsigned keys;    /* at most */
    unsigned clients; /* threads */
    uint64_t seed;    /* of what is called and what is harmed, in which order */
    bool outside;     /* --break outside: the effect of a transaction is made
                       * outside of it, which the checker must find */
};

/* False: a word is wrong, and was told. */
bool chaos_options_parse(struct chaos_options *options, int argc, char **argv);

#endif
