#ifndef ASKED_H
#define ASKED_H

#include "postgres_world.h"

#define REPLY_MAX 24

/* A call, what is asked of it, and what the answer is to be. */
struct asked {
    struct suite_call call;
    suite_op_fn *op;
    enum idem_verdict verdict;
    char reply[REPLY_MAX];
};

/* A world whose statements have time. */
int asked_set_up(void **state);
int asked_tear_down(void **state);

const struct idem_store_ops *asked_ops(const struct postgres_world *world);

/* A call under a new key, which may be minted; of it nothing is asked yet. */
void asked_open(struct asked *asked, struct postgres_world *world, bool minted);

void ask(struct asked *asked, suite_op_fn *op, enum idem_verdict verdict);
void ask_to_complete(struct asked *asked, const struct postgres_world *world,
                     unsigned number, enum idem_verdict verdict);

/* The database is silent until all have asked, so that they share batches. */
void asked_together(struct postgres_world *world, struct asked *asked,
                    unsigned n);

void assert_asked(const struct asked *asked, unsigned n);

/* Both of n calls: ask, together, and have the answers. */
void asked_claim(struct postgres_world *world, struct asked *asked, unsigned n);
void asked_complete(struct postgres_world *world, struct asked *asked,
                    unsigned n);

/* A claim by somebody else: the recorded answer is this call's own. */
void assert_asked_replays(struct postgres_world *world,
                          const struct asked *asked);

#endif
