#ifndef CHECKER_H
#define CHECKER_H

#include <stdbool.h>
#include <stdint.h>

#include <idem/outcome.h>

/* The one judge of what was seen: the records, the effects and the clients'
 * logs of many keys, held against the invariants of exactly once (semantics.md,
 * cases I1 to I10). It is told facts in any order, from one thread at a time,
 * after all is quiet; then it lists what contradicts.
 *
 *   I1   effects of a key: one; RUN_AGAIN: as many as executions were granted
 *   I2   final answers of a key have one status and reason, and who asks
 *        afterwards is not told of a doubt
 *   I3   behind a final no is no effect
 *   I4   final replies of a key are the same bytes
 *   I5   a key ends final, in doubt or free: its last attempt was told so, and
 *        nobody has a lease on it that is longer than one may be
 *   I6   an answer belongs to the request that it is given to
 *   I7   no effect after the key's window
 *   I8   no execution but by the authority's claim
 *   I9   what the cache keeps has an end
 *   I10  behind a final yes is a record that says so, and an effect */
struct checker;

#define CHECKER_RULES 10

/* How often may the handler of a key act? */
enum checker_runs {
    CHECKER_RUN_ONCE,  /* TRANSACTION, HOLD */
    CHECKER_RUN_AGAIN, /* REEXECUTE: the other house de-duplicates */
};

/* One call of a client, with all of its attempts. */
struct checker_call {
    const char *key;
    int64_t began_ns, ended_ns; /* one clock for all calls */
    enum idem_status status;
    enum idem_effect effect;
    bool final;
    const char *reason;
    uint64_t reply; /* a digest of the reply's bytes; 0 without one */
    bool foreign;   /* the reply does not belong to the request */
};

/* What the authority has of a key. */
struct checker_record {
    const char *key;
    const char *state;       /* as in the table: "DONE" */
    enum idem_status status; /* DONE */
    unsigned executions;
    int64_t lease_left_ms; /* RUNNING */
};

/* A violation; rule is 1 … 10. */
typedef void checker_tell_fn(void *with, unsigned rule, const char *key,
                             const char *what);

struct checker *checker_new(void);
void checker_free(struct checker *checker); /* NULL is fine */

/* Texts are copied; a key is declared before other facts of it are told, the
 * first time counts.
 * window_end_ms: wall clock, INT64_MAX: none. */
void checker_key(struct checker *checker, const char *key,
                 enum checker_runs runs, int64_t window_end_ms);

/* The key is a session's: when its sender has had its answer the record may go,
 * and with it how many executions it granted; who comes late is told KEY_STALE,
 * which is not the key's answer. */
void checker_may_forget(struct checker *checker, const char *key);

/* The keys 1 to n of a session, which may be forgotten; of the first `told` of
 * them a stream has said OK, for good. */
void checker_session(struct checker *checker, const char *session,
                     enum checker_runs runs, int64_t n, int64_t told);

/* There are keys of others, too: what is told of a key that was not declared is
 * passed over. Else it fails the test. */
void checker_pass_over_others(struct checker *checker);

void checker_call(struct checker *checker, const struct checker_call *call);
void checker_record(struct checker *checker,
                    const struct checker_record *record);

/* at_ms: wall clock; INT64_MIN: not known. */
void checker_effect(struct checker *checker, const char *key, int64_t at_ms);

/* ttl_ms below 0: it has no end. */
void checker_cached(struct checker *checker, const char *name, int64_t ttl_ms);

/* The number of violations; each is told. longest_lease_ms: any lease of these
 * keys. */
unsigned checker_run(struct checker *checker, int64_t longest_lease_ms,
                     checker_tell_fn *tell, void *with);

/* A checker_tell_fn: prints to stderr. */
void checker_print(void *with, unsigned rule, const char *key,
                   const char *what);

/* Facts from where they are. ------------------------------------------------
 */

/* Lines of a file that begin with a key and a blank, each an effect; a last
 * line that is cut off fails the test. A file that is not there has none. */
void checker_read_log(struct checker *checker, const char *path);

/* The records of both tables, and the effects: each row of a query whose only
 * column is the effect's key. */
void checker_read_postgres(struct checker *checker, const char *conninfo,
                           const char *effects);

/* As checker_read_postgres, of a file of sqlite. */
void checker_read_sqlite(struct checker *checker, const char *path,
                         const char *effects);

#endif
