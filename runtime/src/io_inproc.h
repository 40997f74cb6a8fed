#ifndef IO_INPROC_H
#define IO_INPROC_H

#include "io.h"

/* One thread for all in-process callbacks, started by the first and there until
 * the process ends, as nng's are. */
struct inproc_task {
    void (*run)(struct inproc_task *task);
    struct inproc_task *next;
};

/* The task is not queued already. Its memory may be used again from run on. */
void inproc_post(struct inproc_task *task);

/* Two ends that are connected. False: out of memory. */
bool inproc_pair_new(const char *address, struct io_stream *ends[2])
    IDEM_MUST_CHECK;

#endif
