#ifndef DEMO_PROCESS_H
#define DEMO_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A program that the demo runs. It dies with the demo's main thread, which
 * therefore is the one that starts processes. */
struct process {
    pid_t pid; /* 0: does not run */
    int out;   /* its stdout */
};

/* Start argv[0], found by PATH; NULL ends argv. Its stderr is appended to the
 * file log. False: fork failed. */
bool process_start(struct process *process, const char *const argv[],
                   const char *log);

/* Wait until its stdout says a line with these words; what is behind them goes
 * to rest. False: it ended, or limit_ms went by without a line. */
bool process_wait_line(struct process *process, const char *words, char *rest,
                       size_t size, int limit_ms);

/* Send the signal, wait for the end. Nothing when it does not run. */
void process_end(struct process *process, int signal);

/* Run to the end; true when it exits with 0. Its stdout goes to the log too. */
bool process_run(const char *const argv[], const char *log);

#endif
