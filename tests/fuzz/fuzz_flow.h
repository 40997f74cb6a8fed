#ifndef FUZZ_FLOW_H
#define FUZZ_FLOW_H

#include "flow.idem.h"

/* The service of flow.proto as targets serve it: its streams take what comes
 * and send it back, in both styles; Say is not served. */
extern const struct flow_handlers fuzz_flow_handlers;

#endif
