#include "joint_world.h"

#include "fault.h"
#include "pgbouncer.h"
#include "tx.h"

#include <string.h>

static int64_t wall_ms; /* of all keys */

struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER,
                    .changed = PTHREAD_COND_INITIALIZER};

static void
gate_pass(struct gate *at)
{
    pthread_mutex_lock(&at->lock);
    at->inside = true;
    pthread_cond_broadcast(&at->changed);
    while (!at->open)
        pthread_cond_wait(&at->changed, &at->lock);
    pthread_mutex_unlock(&at->lock);
}

void
gate_await(struct gate *at)
{
    pthread_mutex_lock(&at->lock);
    while (!at->inside)
        pthread_cond_wait(&at->changed, &at->lock);
    pthread_mutex_unlock(&at->lock);
}

void
gate_open(struct gate *at)
{
    pthread_mutex_lock(&at->lock);
    at->open = true;
    pthread_cond_broadcast(&at->changed);
    pthread_mutex_unlock(&at->lock);
}

/* --- Handlers --- */

enum idem_status
pay(struct joint_call *call)
{
    return call_effect(&call->call, 1);
}

enum idem_status
pay_and_say_no(struct joint_call *call)
{
    assert_int_equal(call_effect(&call->call, 1), IDEM_OK);
    return IDEM_NOT_FOUND;
}

enum idem_status
fail_unheard(struct joint_call *call)
{
    assert_int_equal(call_effect(&call->call, 1), IDEM_OK);
    assert_int_equal(
        idem_sql(call->call.ticket.tx, NULL, NULL, "SELEC 1", IDEM_NO_VALUES),
        IDEM_INTERNAL);
    return IDEM_OK;
}

enum idem_status
break_a_constraint(struct joint_call *call)
{
    (void)call_effect(&call->call, 1);
    return call_effect(&call->call, -2000);
}

enum idem_status
say_no_without_sql(struct joint_call *call)
{
    (void)call;
    return IDEM_INVALID_ARGUMENT;
}

static enum idem_status
run(struct joint_call *call, const char *sql)
{
    enum idem_status status = call_effect(&call->call, 1);

    if (status == IDEM_OK)
        status =
            idem_sql(call->call.ticket.tx, NULL, NULL, sql, IDEM_NO_VALUES);
    return status;
}

enum idem_status
fail_at_commit(struct joint_call *call)
{
    return run(call, "INSERT INTO late VALUES (1)");
}

enum idem_status
want_the_shelf(struct joint_call *call)
{
    return run(call, "UPDATE shelf SET n = n + 1");
}

enum idem_status
change_the_path(struct joint_call *call)
{
    return run(call, "SET LOCAL search_path = nowhere");
}

enum idem_status
wait_at_the_gate(struct joint_call *call)
{
    enum idem_status status = call_effect(&call->call, 1);

    gate_pass(&gate);
    return status;
}

/* --- Calls --- */

/* What once does with a session's key whose number may not run. */
static void
give_back(struct idem_ticket *ticket)
{
    struct joint_call *call = (struct joint_call *)ticket;

    ticket->done = call->answered;
    call->call.suite->store->ops->release(call->call.suite->store, ticket);
}

/* What once does: the handler, then its end. */
static void
run_handler(struct idem_ticket *ticket)
{
    struct joint_call *call = (struct joint_call *)ticket;
    struct idem_store *store = call->call.suite->store;
    enum idem_status status;

    if (ticket->verdict != IDEM_VERDICT_MINE) {
        call->answered(ticket);
        return;
    }
    if (!call->handler) {
        ticket->done = give_back;
        store->ops->watermark(store, ticket);
        return;
    }
    call->runs++;
    status = call->handler(call);
    ticket->done = call->answered;
    ticket->answer = (struct idem_answer){
        .status = status, .reply = idem_bytes_of(status ? "" : "paid")};
    if (status == IDEM_ABORTED || call->ending == RELEASED)
        store->ops->release(store, ticket);
    else
        store->ops->complete(store, ticket);
}

void
joint_open(struct joint_call *call, struct postgres_world *world)
{
    char key[IDEM_KEY_MAX + 1];

    memset(call, 0, sizeof *call);
    suite_key_at(key, wall_ms, WINDOW_MS);
    call_open(&call->call, &world->suite, key, IDEM_MODE_TRANSACTION, 1);
    call->call.ticket.group = CROWD;
    call->answered = call->call.ticket.done;
    call->handler = pay;
}

void
joint_start(struct joint_call *call)
{
    call->call.ticket.done = run_handler;
    call_start(&call->call, call->call.suite->store->ops->claim);
}

enum idem_verdict
joint_await(struct joint_call *call)
{
    return call_await(&call->call);
}

bool
is_open(const struct joint_call *call)
{
    enum idem_verdict verdict = call->call.ticket.verdict;

    return verdict == IDEM_VERDICT_UNKNOWN ||
           verdict == IDEM_VERDICT_CONFLICT ||
           verdict == IDEM_VERDICT_RUNNING ||
           (verdict == IDEM_VERDICT_MINE &&
            call->call.ticket.answer.status == IDEM_ABORTED);
}

enum idem_verdict
joint_end(struct joint_call *call)
{
    while (is_open(call)) {
        call->call.ticket.repeat = true;
        joint_start(call);
        (void)joint_await(call);
    }
    return call->call.ticket.verdict;
}

int64_t
effects(const struct joint_call *call)
{
    const struct postgres_world *world =
        call->call.suite->factory->with; /* world_open says so */

    return postgres_sql(world->postgres,
                        "SELECT count(*) FROM effects WHERE key = '%s'",
                        call->call.key);
}

/* DONE: its first commit stood, and its answer was lost. */
static void
assert_is_over(struct joint_call *call)
{
    enum idem_verdict verdict = joint_end(call);

    assert_true(verdict == IDEM_VERDICT_MINE || verdict == IDEM_VERDICT_DONE);
}

void
crowd_open(struct crowd *crowd, struct postgres_world *world)
{
    crowd->world = world;
    for (unsigned i = 0; i < CROWD; i++)
        joint_open(&crowd->calls[i], world);
    gate.inside = gate.open = false;
}

void
crowd_run(struct crowd *crowd)
{
    struct joint_call first;

    joint_open(&first, crowd->world);
    first.handler = wait_at_the_gate;
    joint_start(&first);
    gate_await(&gate);
    for (unsigned i = 0; i < CROWD; i++)
        joint_start(&crowd->calls[i]);
    gate_open(&gate);
    (void)joint_await(&first);
    for (unsigned i = 0; i < CROWD; i++)
        (void)joint_await(&crowd->calls[i]);
    assert_is_over(&first);
    assert_int_equal(effects(&first), 1);
    call_close(&first.call);
}

void
crowd_close(struct crowd *crowd, unsigned but)
{
    struct postgres_world *world = crowd->world;
    char keys[CROWD * (IDEM_KEY_MAX + 1)] = "";
    unsigned n = 0;

    for (unsigned i = 0; i < CROWD; i++) {
        struct joint_call *call = &crowd->calls[i];

        if (i != but) {
            assert_is_over(call);
            strcat(strcat(keys, n++ ? "," : ""), call->call.key);
        }
        call_close(&call->call);
    }
    assert_int_equal(
        postgres_sql(world->postgres,
                     "SELECT count(*) * 1000 + count(DISTINCT key) FROM "
                     "effects WHERE key = ANY (string_to_array('%s', ','))",
                     keys),
        n * 1000 + n);
}

bool pooled;

static struct pgbouncer *pooler;

int
joint_set_up(void **state)
{
    struct postgres_world *world = world_open(false);

    if (pooled) {
        pooler = pgbouncer_start(tcp_proxy_port(world->proxy));
        world->options.pooled_conninfo = pgbouncer_conninfo(pooler);
    }
    world->options.group_transactions = 1;
    world->options.idle_in_transaction_ms = 600000;
    world_reopen(world);
    wall_ms = world->factory.wall_ms(world);
    *state = world;
    return 0;
}

int
joint_tear_down(void **state)
{
    world_close(*state);
    pgbouncer_free(pooler);
    return 0;
}
