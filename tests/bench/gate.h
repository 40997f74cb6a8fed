#ifndef GATE_H
#define GATE_H

#include <idem/channel.h>

/* Many calls of Slow with one key: the first is in its handler and stays there,
 * the others wait for its answer. */
struct gate;

/* Start so many; returns when the first is in its handler. */
struct gate *gate_shut(struct idem_channel *channel, unsigned calls);

/* Let it go on, and wait until all are answered. Ends the process when one of
 * them fails. */
void gate_open(struct gate *gate);

/* The handler's: stay here while the gate is shut. */
void gate_stay(void);

#endif
