#ifndef DOUBTS_COMMAND_H
#define DOUBTS_COMMAND_H

extern const char doubts_usage[];

/* `idemctl doubts`: argv[0] is the command. The exit code: 0 when there are
 * none. */
int doubts_command_run(int argc, char **argv);

#endif
