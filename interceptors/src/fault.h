#ifndef FAULT_H
#define FAULT_H

#include <idem/base.h>

/* Points at which a test makes the process die, stop, wait or fail, at every
 * step that a crash may fall between (docs/faults.md lists them). Compiled out
 * unless the build has IDEM_FAULTS.
 *
 * The environment says what happens where: IDEM_FAULT=point:nth:action, several
 * separated by commas. nth counts from 1, "*" is every time. Actions:
 *   kill      SIGKILL to the process itself
 *   stop      SIGSTOP to the process itself
 *   error     IDEM_FAULT() is true: the step fails as if the world had done it
 *   delay=ms  sleep
 * IDEM_FAULT_LOG=file appends the name of every point that is reached. */
#ifdef IDEM_FAULTS
#define IDEM_FAULT(point) fault_reached(point)
#else
#define IDEM_FAULT(point) ((void)(point), false)
#endif

#ifdef IDEM_FAULTS
/* True when the step shall fail. Any thread. */
bool fault_reached(const char *point);

/* Replace what the environment said, and count from 1 again; NULL: no faults.
 * For tests in one process, while nothing else runs. */
void fault_set(const char *plan);

/* As IDEM_FAULT_LOG, from here; NULL: no log. While nothing else runs. */
void fault_log(const char *path);
#endif

#endif
