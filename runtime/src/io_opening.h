#ifndef IO_OPENING_H
#define IO_OPENING_H

#include "io.h"

/* Who waits for a listener's next connection, or for a dialer's: what each
 * transport notes of it. Its owner's lock guards it. */
struct io_opening {
    io_open_fn *done; /* NULL: nobody waits, or is told already */
    void *with;
    bool closed;
};

/* False: closed, and done is not told. */
static inline bool
io_opening_begin(struct io_opening *opening, io_open_fn *done, void *with)
{
    if (opening->closed)
        return false;
    opening->done = done;
    opening->with = with;
    return true;
}

#endif
