#ifndef SHIELD_BREAKER_H
#define SHIELD_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

/* Leaves something alone for a while after it has failed again and again.
 *
 *   CLOSED --limit failures in a row--> OPEN --open_ns--> one trial
 *   the trial succeeds: CLOSED; it fails: OPEN again
 *
 * One thread. Zeroed but for limit and open_ns, it is closed. */
struct shield_breaker {
    unsigned limit;
    int64_t open_ns;
    unsigned failures; /* in a row */
    int64_t until_ns;  /* OPEN: no trial before */
};

/* May it be tried now? Each true while it is open is a trial: the next one is
 * open_ns later. */
bool shield_breaker_allows(struct shield_breaker *breaker, int64_t now_ns);

void shield_breaker_succeeded(struct shield_breaker *breaker);
void shield_breaker_failed(struct shield_breaker *breaker, int64_t now_ns);

#endif
