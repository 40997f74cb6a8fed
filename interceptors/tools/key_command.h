#ifndef KEY_COMMAND_H
#define KEY_COMMAND_H

#include <stdbool.h>

/* The commands of idemctl about one key: resolve, abandon, settle. */
bool key_command_is(const char *name);

/* argv[0] is the command. The exit code. */
int key_command_run(int argc, char **argv);

#endif
