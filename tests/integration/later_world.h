#ifndef LATER_WORLD_H
#define LATER_WORLD_H

#include "support.h"

#include "later.idem.h"
#include "tempdir.h"

#include <idem/standard.h>

#include <pthread.h>
#include <stdatomic.h>

/* A server whose handlers keep their contexts until a test answers. */

/* A context that a handler has kept. */
struct kept {
    struct later_world *world;
    struct idem_context *context;
    const later_question *question;
    later_answer *answer;
    struct kept *next;
    bool told; /* it was given up; the world's lock */
};

struct later_world {
    struct tempdir dir;
    struct idem_server *server;
    struct idem_channel *channel;
    atomic_uint notes;       /* times that Note's handler ran */
    atomic_uint probes;      /* … and Pay's probe, which … */
    enum idem_probed probed; /* … says that. Set before the call */

    /* What Ask's handler does before it returns; NULL: nothing. Set before the
     * call. True: it has completed the call. */
    bool (*at_once)(struct kept *kept);

    pthread_mutex_t lock;  /* guards the rest */
    pthread_cond_t change; /* signalled for each */
    struct kept *first;    /* the latest first */
    unsigned n_told;       /* callbacks of idem_context_on_cancel */
    unsigned ended;        /* calls of later_start that are over */
    bool freed;            /* the server is */
};

/* What came of a call. */
struct later_result {
    struct later_world *world;
    struct idem_outcome outcome;
    unsigned told;
    uint64_t number;
    char key[256];
};

/* The channel has the server's clock, too. */
void later_world_open(struct later_world *world,
                      const struct idem_server_options *options);
void later_world_close(struct later_world *world);

/* A thread that frees the server; with is the world. */
void *later_free_server(void *with);

typedef struct idem_call *
later_start_fn(struct idem_channel *channel, const later_question *question,
               const struct idem_call_options *options, later_ask_done *done);

/* The result lives until the call is over. The handle is the caller's. */
struct idem_call *later_start(struct later_world *world, later_start_fn *start,
                              uint64_t number,
                              const struct idem_call_options *options,
                              struct later_result *result);

/* The same, and the handle is dropped. */
void later_begin(struct later_world *world, later_start_fn *start,
                 uint64_t number, const struct idem_call_options *options,
                 struct later_result *result);

/* It was told once, with that. */
void later_assert_ended(const struct later_result *result,
                        enum idem_status status, enum idem_effect effect);

/* Wait until so many calls of later_start are over. */
void later_await_ended(struct later_world *world, unsigned ended);

/* Wait for a handler that keeps its context; the caller's, to be answered.
 * NULL: the server is freed, and there is none. */
struct kept *later_take(struct later_world *world);

/* Be told when it is given up, and wait for that. */
void later_listen(struct kept *kept);
void later_await_told(struct kept *kept);

/* Complete it: with the question's number, or with status and "said so". Frees
 * what was kept. */
void later_answer_it(struct kept *kept, enum idem_status status);

#endif
