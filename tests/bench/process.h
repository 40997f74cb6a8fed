#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define PROCESS_ARGUMENTS 12

/* A program of the benchmark's own folder, with its output to be read. It ends
 * with the benchmark. */
struct process {
    pid_t pid;
    FILE *output;
};

/* Is there a program of that name? */
bool process_exists(const char *program);

/* arguments end with NULL and begin after the program. */
struct process process_start(const char *program, const char *const *arguments);

/* The next line, without its end; ends the benchmark when there is none. */
void process_read_line(struct process *process, char *line, int size);

void process_kill(struct process *process); /* and wait */
void process_wait(struct process *process); /* ends the benchmark unless 0 */

long process_resident_kib(pid_t pid);

#endif
