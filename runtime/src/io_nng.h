#ifndef IO_NNG_H
#define IO_NNG_H

#include "io.h"

#include <nng/nng.h>

/* What the two files of nng's transport share: io_nng.c (streams) and
 * io_nng_open.c (how they come to be). */

#define IO_NNG_ADDRESS_MAX 256

/* Owns the nng stream. NULL: out of memory. */
struct io_stream *io_nng_stream_new(nng_stream *nng);

#endif
