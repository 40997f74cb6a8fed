#ifndef SHIELD_WORLD_H
#define SHIELD_WORLD_H

#include <pthread.h>

#include <idem/shield.h>

/* Records by number, each with its own key, request and answer, and looks at
 * them that a test waits for. A DONE whose answer is not that of the record
 * fails the test: no look is ever answered with another's. */
struct shield_asked {
    struct idem_shield_look look;
    struct idem_record_id id;
    struct idem_fingerprint fingerprint;
    struct idem_arena *arena;
    char key[32];
    unsigned number;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned done; /* how often */
};

/* At that URL, with a budget that a busy machine keeps. */
struct idem_shield *shield_open(const char *url);
struct idem_shield *shield_open_with(struct idem_redis_options options);

/* … and wait until looks are sent. */
struct idem_shield *shield_open_connected(struct idem_redis_options options);
void shield_await_connected(struct idem_shield *shield);

void shield_ask_begin(struct idem_shield *shield, struct shield_asked *asked,
                      unsigned number);
enum idem_verdict shield_ask_end(struct shield_asked *asked);

/* Both. */
enum idem_verdict shield_ask(struct idem_shield *shield, unsigned number);

/* As number, for a request that is not the recorded one. */
enum idem_verdict shield_ask_otherwise(struct idem_shield *shield,
                                       unsigned number);

/* Cache the record's answer. */
void shield_learn(struct idem_shield *shield, unsigned number);

/* … and wait until Redis has it. */
void shield_learn_for_sure(struct idem_shield *shield, unsigned number);

struct idem_shield_counts shield_counts(const struct idem_shield *shield);

#endif
