#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Programs that a test starts. They end with the thread that started them, also
 * when that dies by a signal (PR_SET_PDEATHSIG): start them from main. */

struct child_options {
    int death_signal;   /* sent when the test is gone; 0: SIGKILL */
    const char *user;   /* run as this user when the test runs as root; NULL: no
                         * change */
    const char *log;    /* receives stdout and stderr; NULL: inherited */
    const char *folder; /* to start in; NULL: the test's own */
};

/* The path of this program, to start it again; the room ends with the process.
 * /proc/self/exe, started, is valgrind where that runs it. */
const char *child_same_program(void);

/* arguments end with NULL; the first is the program, by path or name. */
pid_t child_start(const struct child_options *options,
                  const char *const *arguments);

/* Start a server that first says "listening on ADDRESS", into a log that is
 * written anew, and wait until it has; it may be dead again by then. 0: it died
 * before, or says nothing for 60 s (and is killed). */
pid_t child_serve(const struct child_options *options,
                  const char *const *arguments);

/* Start and wait; fails the test, with the log, when it does not exit 0. */
void child_run(const struct child_options *options,
               const char *const *arguments);

/* Signal it and wait until it is gone; SIGKILL after 20 s. Returns the wait
 * status. pid 0: nothing. */
int child_stop(pid_t pid, int signal);

/* Is it still there? Reaps it when it is not. */
bool child_alive(pid_t pid);

/* Print the end of a log to stderr. */
void child_show(const char *log);

/* Wait, looking again and again, until look(with) is true. False after
 * timeout_ms. */
bool child_wait_until(bool (*look)(void *with), void *with, int timeout_ms);

#endif
