#ifndef BURST_H
#define BURST_H

#include <idem/burst.h>

/* Where bursts begin and end. One inside another is one. */
void burst_begin(void);
void burst_end(void);

#endif
