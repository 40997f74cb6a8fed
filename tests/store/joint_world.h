#ifndef JOINT_WORLD_H
#define JOINT_WORLD_H

#include "postgres_world.h"

/* Interactive calls on PostgreSQL that may share a transaction. Each call's
 * handler runs in its done, as a server's does. */

#define CROWD 24
#define WINDOW_MS 86400000
#define RECORDS "shop.v1.Shop/Buy" /* only the last round trip has it */

struct joint_call;
typedef enum idem_status handler_fn(struct joint_call *call);

/* How a handler ends. */
enum ending { RECORDED, RELEASED };

struct joint_call {
    struct suite_call call; /* first: a ticket is its call */
    void (*answered)(struct idem_ticket *ticket); /* suite_call's */
    handler_fn *handler; /* NULL: its watermark is asked for, and it goes */
    enum ending ending;
    unsigned runs;
};

struct crowd {
    struct postgres_world *world;
    struct joint_call calls[CROWD];
};

/* A handler that stays until the others wait behind it. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool inside, open;
};

extern struct gate gate;
void gate_await(struct gate *at);
void gate_open(struct gate *at);
/* Handlers. */
enum idem_status pay(struct joint_call *call);

/* It writes, and then thinks better of it. */
enum idem_status pay_and_say_no(struct joint_call *call);

/* A statement of its own failed, and it says OK (B074). */
enum idem_status fail_unheard(struct joint_call *call);
enum idem_status break_a_constraint(struct joint_call *call);
enum idem_status say_no_without_sql(struct joint_call *call);
enum idem_status fail_at_commit(struct joint_call *call);
enum idem_status want_the_shelf(struct joint_call *call);
enum idem_status change_the_path(struct joint_call *call);
enum idem_status wait_at_the_gate(struct joint_call *call);

void joint_open(struct joint_call *call, struct postgres_world *world);
void joint_start(struct joint_call *call);
enum idem_verdict joint_await(struct joint_call *call);

/* What once repeats, alone. */
bool is_open(const struct joint_call *call);
enum idem_verdict joint_end(struct joint_call *call);
/* Rows that it has made. */
int64_t effects(const struct joint_call *call);

/* All of them wait before the first may end, so that they are one group. */
void crowd_open(struct crowd *crowd, struct postgres_world *world);
void crowd_run(struct crowd *crowd);

/* But for one, each is there once. */
void crowd_close(struct crowd *crowd, unsigned but);

/* Through PgBouncer, which stands before the proxy. */
extern bool pooled;
int joint_set_up(void **state);
int joint_tear_down(void **state);

#endif
