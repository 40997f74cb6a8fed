#ifndef SUITE_CALL_H
#define SUITE_CALL_H

#include "support.h"

#include "statements.h"
#include "suite.h"

#include <pthread.h>

/* What the tests of the suite share. */
struct suite {
    const struct suite_factory *factory;
    struct idem_store *store;
    bool minted;   /* which keys suite_key makes */
    unsigned keys; /* made so far */
};

/* One call with a key: a ticket whose operations are waited for. */
struct suite_call {
    struct idem_ticket ticket;
    struct suite *suite;
    char key[IDEM_KEY_MAX + 1];
    pthread_mutex_t lock; /* guards answered */
    pthread_cond_t wake;
    bool answered;
    /* run: what its second half says, and what it saw. */
    struct idem_statements statements;
    enum idem_status says; /* OK: "ran", recorded */
    bool released;         /* … nothing is recorded */
    unsigned concluded;    /* times */
    enum idem_status failed;
    int64_t number; /* the first value of the last statement's first row */
};

/* A key that nobody used before. */
void suite_key(struct suite *suite, char *key);

/* A minted key of another time. */
void suite_key_at(char *key, int64_t minted_ms, int64_t window_ms);

/* A call with that key whose request is told apart by a number. LEASED calls
 * are of REEXECUTE; a test changes the ticket as it likes. */
void call_open(struct suite_call *call, struct suite *suite, const char *key,
               enum idem_mode mode, int request);
void call_close(struct suite_call *call);

/* Compute the digest anew, after tenant or scope were changed. */
void call_identify(struct suite_call *call);

/* One operation of the ops, and its verdict. Fails after 20 s. */
typedef void suite_op_fn(struct idem_store *store, struct idem_ticket *ticket);
enum idem_verdict call_do(struct suite_call *call, suite_op_fn *op);
enum idem_verdict call_claim(struct suite_call *call);
enum idem_verdict call_complete(struct suite_call *call,
                                enum idem_status status, const char *reply);
enum idem_verdict call_release(struct suite_call *call);
enum idem_verdict call_look(struct suite_call *call);
enum idem_verdict call_abandon(struct suite_call *call);
enum idem_verdict call_doubt(struct suite_call *call);
enum idem_verdict call_renew(struct suite_call *call);
enum idem_verdict call_mark(struct suite_call *call, const char *step);

/* run: add what writes an effect and gives its amount back; run what was
 * added. */
void call_add_effect(struct suite_call *call, int64_t amount);
enum idem_verdict call_run(struct suite_call *call);

/* Start an operation, wait for it later. */
void call_start(struct suite_call *call, suite_op_fn *op);
enum idem_verdict call_await(struct suite_call *call);

/* A whole call in one line: claim on a ticket of its own, complete when it is
 * MINE. What the claim said. */
enum idem_verdict suite_claim_once(struct suite *suite, const char *key,
                                   enum idem_mode mode, int request);

/* Write an effect in the call's transaction; what idem_sql said. */
enum idem_status call_effect(struct suite_call *call, int64_t amount);

/* How many effects of that key are there for all to see? */
int64_t suite_effects(struct suite *suite, const char *key);

void assert_text(struct idem_bytes bytes, const char *text);

/* The lease is over. */
void suite_pass_lease(struct suite *suite);

/* Group fixtures of cmocka: a struct suite with an open store. */
int suite_set_up(void **state);
int suite_tear_down(void **state);

/* The groups of the suite. */
int suite_run_arrows(void);
int suite_run_fences(void);
int suite_run_transactions(void);
int suite_run_statements(void);
int suite_run_sql(void);
int suite_run_keys(void);
int suite_run_races(void);
int suite_run_settle(void);
int suite_run_abandon(void);
int suite_run_steps(void);
int suite_run_sessions(void);
int suite_run_executions(void);
int suite_run_probe(void);
int suite_run_crashes(const struct suite_factory *factory);
int suite_run_everywhere(const struct suite_factory *factory);

#endif
