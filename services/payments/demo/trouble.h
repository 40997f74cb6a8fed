#ifndef DEMO_TROUBLE_H
#define DEMO_TROUBLE_H

#include "stage.h"

/* What goes wrong while the clients call, and when: evenly spread over the
 * calls. The main thread's. */
struct trouble {
    struct stage *stage;
    unsigned kills;         /* servers killed so far */
    bool flushed, silenced; /* Redis */
    bool crashed;           /* PostgreSQL */
};

/* Cause what is due when so many calls are settled. False: the stage cannot be
 * set up again. */
bool trouble_make(struct trouble *trouble, unsigned settled);

#endif
