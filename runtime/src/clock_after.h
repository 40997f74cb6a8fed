#ifndef CLOCK_AFTER_H
#define CLOCK_AFTER_H

#include <stdint.h>

/* The monotonic time that is ms after now_ns; INT64_MAX, for ever, when there
 * is none: an option may say so. One that is negative is over: now. */
int64_t clock_after(int64_t now_ns, int64_t ms);

#endif
