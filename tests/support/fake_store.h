#ifndef FAKE_STORE_H
#define FAKE_STORE_H

#include <idem/store.h>

/* A store whose answers are the test's: each operation waits until the test
 * takes it and says what it came to. Any thread may ask; the test takes them in
 * the order in which they came. */

enum fake_op {
    FAKE_CLAIM,
    FAKE_COMPLETE,
    FAKE_RELEASE,
    FAKE_DOUBT,
    FAKE_RENEW,
    FAKE_MARK,
    FAKE_LOOK,
    FAKE_WATERMARK,
    FAKE_ACKNOWLEDGE,
    FAKE_OPS,
};

struct fake_store {
    struct idem_store store; /* first */
    pthread_mutex_t lock;    /* guards the rest */
    pthread_cond_t changed;
    struct idem_ticket *first, **last;
    unsigned asked[FAKE_OPS]; /* how often */
    bool freed;               /* by its owner; the memory is the test's */
    const char *epoch;        /* "" at first */
};

void fake_store_init(struct fake_store *fake);
void fake_store_fini(struct fake_store *fake);

/* Wait for the next operation and take it. Fails the test when it is another
 * one, or when none comes within 10 s of real time. */
struct idem_ticket *fake_store_take(struct fake_store *fake, enum fake_op op);

/* Say what came of it. */
void fake_store_say(struct idem_ticket *ticket, enum idem_verdict verdict);

/* Take the next operation and say so. */
void fake_store_next(struct fake_store *fake, enum fake_op op,
                     enum idem_verdict verdict);

/* As above, FAILED with this status. */
void fake_store_fail(struct fake_store *fake, enum fake_op op,
                     enum idem_status status);

/* From here the store answers in this epoch; a literal. */
void fake_store_set_epoch(struct fake_store *fake, const char *epoch);

/* No operation waits. */
bool fake_store_quiet(struct fake_store *fake);
unsigned fake_store_asked(struct fake_store *fake, enum fake_op op);

#endif
