#ifndef CHAOS_INSIDE_H
#define CHAOS_INSIDE_H

#include "chaos_io.h"

#include "io_inproc.h"

/* What chaos_io.c and chaos_stream.c share. */

struct chaos_script chaos_script_of(struct chaos_io *chaos);

/* A stream of the transport below, as the script wants it; NULL for none. */
struct io_stream *chaos_wrap(struct chaos_io *chaos, struct io_stream *inner);

#endif
