#ifndef KEY_OPTIONS_H
#define KEY_OPTIONS_H

#include <idem/status.h>

/* The command line of `idemctl resolve`, `abandon` and `settle`. The texts are
 * argv's; NULL when not given. */
struct key_options {
    const char *command;
    const char *key;
    const char *method; /* --method */
    const char *tenant; /* --tenant; "" */
    const char *server; /* one of these three */
    const char *postgres;
    const char *sqlite;
    int64_t timeout_ms; /* --timeout-ms; 10,000 */

    bool took_effect, no_effect; /* settle: one of them */
    enum idem_status status;     /* --status */
    bool has_status;
    const char *message; /* --message */
    const char *reply;   /* --reply: a file */
    const char *by;      /* --by; the environment's USER */
    const char *why;     /* --why */
};

extern const char key_usage[];

/* argv[0] is the command. False: what is wrong is said, to stderr. */
bool key_options_parse(struct key_options *options, int argc, char **argv);

#endif
