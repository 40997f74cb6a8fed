/* Calls of a method with a group: two keys share a transaction, and a rival on
 * another server has a call with the first of them.
 *
 * What is here and what is not: docs/model.md. Each step names the place that
 * it stands for as file.c:function(); tests/model/check holds that these are
 * there. An answer is the number of the transaction that recorded it, and one.
 *
 *   -DCRASHES=n        ends of the group's server, by kill -9
 *   -DRESTARTS=n       immediate ends of the database
 *   -DNO_RIVAL         nobody else has a call
 *   -DLOCKS_DIFFER     the servers disagree on the number of a key's lock
 *   -DBREAK_x          a rule that is not kept: a bug that the model must find
 */
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#define KEYS 2
#define EXECUTIONS 2 /* of a call alone: after a lost commit it asks again */

/* Transactions: the group's, then two of each call that goes alone. */
#define SHARED 0
#define ALONE(call) (1 + (call) * EXECUTIONS)
#define RIVAL 2 /* the third call; the members are called as their keys */
#define CALLS 3
#define TXS (1 + CALLS * EXECUTIONS)

/* What a transaction has of a key. */
#define OF(t, k) ((t) * KEYS + (k))

#ifdef LOCKS_DIFFER
#define lock_of(t, k) (KEYS * ((t) >= ALONE(RIVAL)) + (k))
#else
#define lock_of(t, k) (k)
#endif

mtype:phase = { FREE, OPEN, ORPHAN, COMMITTING, COMMITTED, CONFLICT, UNDONE };

/* --- PostgreSQL --- */

bool done[KEYS];   /* the record is there … */
byte answer[KEYS]; /* … and this is its answer */
byte lock[2 * KEYS]; /* a transaction + 1; 0: free */
mtype:phase tx[TXS] = FREE;
bool in[TXS * KEYS];     /* its record is to be written here … */
bool wrote[TXS * KEYS];  /* … with what its handler wrote … */
bool no[TXS * KEYS];     /* … or with a final no */
bool denied[TXS * KEYS]; /* it was said that nothing of it stands */

/* --- The servers --- */

bool alone[KEYS]; /* the member is sent to a transaction of its own */
bool over;        /* the group is */
bool inside[CALLS + 1], dead[CALLS + 1];

/* --- What the world saw --- */

byte effects[KEYS], told[KEYS];

/* I2, I3, I10: one final answer; behind a yes is one effect, behind a no none.
 */
inline tell_final(key, a) {
    assert(told[key] == 0 || told[key] == a);
    told[key] = a;
    assert(effects[key] == (no[OF(a - 1, key)] -> 0 : 1))
}

/* What was said to be undone never takes effect. */
inline deny(t, key) {
    denied[OF(t, key)] = true;
    assert(tx[t] != COMMITTED || !in[OF(t, key)])
}

inline unlock(t, key) {
    if
    :: lock[lock_of(t, key)] == t + 1 -> lock[lock_of(t, key)] = 0
    :: else
    fi
}

inline undo(t, as) { tx[t] = as; unlock(t, 0); unlock(t, 1) }

/* I1 */
inline record_one(t, key) {
    if
    :: in[OF(t, key)] ->
        assert(!denied[OF(t, key)]);
        if
        :: wrote[OF(t, key)] -> effects[key]++; assert(effects[key] == 1)
        :: else
        fi;
        if
        :: !done[key] -> done[key] = true; answer[key] = t + 1
        :: else
        fi
    :: else
    fi
}

/* All records are one INSERT, which fails behind a rival's, then COMMIT. */
inline end(t) {
    if
#ifndef BREAK_RIVAL_IGNORED
    :: (in[OF(t, 0)] && done[0]) || (in[OF(t, 1)] && done[1]) ->
        undo(t, CONFLICT)
#endif
    :: else -> record_one(t, 0); record_one(t, 1); undo(t, COMMITTED)
    fi
}

/* A backend goes on by itself, and sees later that its client is gone. */
proctype database()
{
    byte i;
    byte times = RESTARTS;

end_here:
    do
    :: d_step { tx[0] == COMMITTING -> end(0) }
    :: d_step { tx[1] == COMMITTING -> end(1) }
    :: d_step { tx[2] == COMMITTING -> end(2) }
    :: d_step { tx[3] == COMMITTING -> end(3) }
    :: d_step { tx[4] == COMMITTING -> end(4) }
    :: d_step { tx[5] == COMMITTING -> end(5) }
    :: d_step { tx[6] == COMMITTING -> end(6) }
    :: d_step { tx[0] == ORPHAN -> undo(0, UNDONE) }
    :: d_step { tx[1] == ORPHAN -> undo(1, UNDONE) }
    :: d_step { tx[2] == ORPHAN -> undo(2, UNDONE) }
    :: d_step { tx[3] == ORPHAN -> undo(3, UNDONE) }
    :: d_step { tx[4] == ORPHAN -> undo(4, UNDONE) }
    :: d_step { tx[5] == ORPHAN -> undo(5, UNDONE) }
    :: d_step { tx[6] == ORPHAN -> undo(6, UNDONE) }
    :: d_step {
        times > 0 ->
        times--;
        i = 0;
        do
        :: i == TXS -> break
        :: else ->
            if
            :: tx[i] == OPEN || tx[i] == COMMITTING || tx[i] == ORPHAN ->
                undo(i, UNDONE)
            :: else
            fi;
            i++
        od;
        i = 0
       }
    od
}

/* --- The group's session --- */

/* store_postgres_share_calls.c:pg_share_part_known() */
inline try_lock(key) {
    if
    :: lock[lock_of(SHARED, key)] == 0 ->
        lock[lock_of(SHARED, key)] = SHARED + 1;
        in[OF(SHARED, key)] = true
    :: else -> alone[key] = true
    fi
}

inline part_known(key) {
    if
    :: in[OF(SHARED, key)] && done[key] ->
        in[OF(SHARED, key)] = false; alone[key] = true
    :: else
    fi
}

/* store_postgres_joint.c:run_one(): it writes; or it says no, or fails, and is
 * undone to its savepoint. */
inline run_one(key) {
    if
    :: tx[SHARED] != OPEN || !in[OF(SHARED, key)]
    :: tx[SHARED] == OPEN && in[OF(SHARED, key)] ->
        if
        :: wrote[OF(SHARED, key)] = true
        :: no[OF(SHARED, key)] = true;
#ifdef BREAK_NO_SAVEPOINT
            wrote[OF(SHARED, key)] = true
#endif
        :: in[OF(SHARED, key)] = false; deny(SHARED, key)
        fi
    fi
}

/* CONFLICT: it runs again, alone. */
inline send_back(key) {
    if
    :: in[OF(SHARED, key)] -> deny(SHARED, key); alone[key] = true
    :: else
    fi
}

/* UNKNOWN: it asks again by a claim, alone. */
inline ask_again(key) {
    if
    :: in[OF(SHARED, key)] -> alone[key] = true
    :: else
    fi
}

inline tell_done(key) {
    if
    :: in[OF(SHARED, key)] -> tell_final(key, SHARED + 1)
    :: else
    fi
}

/* The one that is to blame goes back, its neighbour is told as done. */
inline send_guilty_back(key) {
    if
    :: in[OF(SHARED, key)] && done[key] -> send_back(key)
    :: in[OF(SHARED, key)] && !done[key] -> tell_final(key, SHARED + 1)
    :: else
    fi
}

proctype group()
{
    {
        inside[CALLS] = true;

        /* store_postgres_joint.c:open_transaction(): the locks are tried in one
         * statement, the records looked for in the next one (M5). */
        atomic { tx[SHARED] = OPEN; try_lock(0); try_lock(1) }
        atomic {
            if
            :: tx[SHARED] == OPEN -> part_known(0); part_known(1)
            :: else
            fi
        }

        /* store_postgres_joint.c:run_all(), in the order of their keys */
        atomic { run_one(0) }
        atomic { run_one(1) }

        /* store_postgres_joint.c:close_transaction() */
        atomic {
            if
            :: tx[SHARED] != OPEN -> send_back(0); send_back(1); goto out
            :: tx[SHARED] == OPEN ->
                if
                :: tx[SHARED] = ORPHAN; send_back(0); send_back(1); goto out
                :: !in[OF(SHARED, 0)] && !in[OF(SHARED, 1)] ->
                    undo(SHARED, UNDONE); goto out
                :: in[OF(SHARED, 0)] || in[OF(SHARED, 1)] ->
                    tx[SHARED] = COMMITTING
                fi
            fi
        }

        /* store_postgres_joint.c:commit() */
        if
        :: atomic { tx[SHARED] == COMMITTED -> tell_done(0); tell_done(1) }
        :: atomic {
            tx[SHARED] == CONFLICT || tx[SHARED] == UNDONE ->
#ifdef BREAK_NEIGHBOURS_TOLD
            send_guilty_back(0); send_guilty_back(1)
#else
            send_back(0); send_back(1)
#endif
           }
        :: atomic {
            true -> /* the connection was lost with the COMMIT under way */
#ifdef BREAK_LOST_IS_UNDONE
            send_back(0); send_back(1)
#else
            ask_again(0); ask_again(1)
#endif
           }
        fi;
out:    skip
    } unless { dead[CALLS] };
    atomic { inside[CALLS] = false; dead[CALLS] = false; over = true }
}

/* --- A call alone: transaction.pml in short --- */

proctype call(byte me; byte key)
{
    byte execution, t;
    bool locked;

    (me == RIVAL || over);
    {
        if
        :: me != RIVAL && !alone[key] -> goto out
        :: else
        fi;
        inside[me] = true;

        /* store_postgres_transaction.c:open_absent() */
ask:    atomic {
            t = ALONE(me) + execution;
            tx[t] = OPEN;
            locked = lock[lock_of(t, key)] == 0;
            if
            :: locked -> lock[lock_of(t, key)] = t + 1
            :: else
            fi
        }
        atomic {
            if
            :: tx[t] != OPEN -> goto out
            :: tx[t] == OPEN && done[key] ->
                undo(t, FREE); tell_final(key, answer[key]); goto out
            :: tx[t] == OPEN && !done[key] && !locked ->
                undo(t, FREE);
                if
                :: goto ask
                :: goto out
                fi
            :: tx[t] == OPEN && !done[key] && locked -> in[OF(t, key)] = true
            fi
        }

        /* Its handler, and store_postgres_commit.c:settle_work() */
        atomic {
            if
            :: tx[t] != OPEN -> deny(t, key); goto out
            :: tx[t] == OPEN -> wrote[OF(t, key)] = true; tx[t] = COMMITTING
            :: tx[t] == OPEN ->
                no[OF(t, key)] = true; tx[t] = COMMITTING
            :: tx[t] == OPEN -> tx[t] = ORPHAN; deny(t, key); goto out
            fi
        }

        /* store_postgres_commit.c:tell_commit(), tell_rival(), tell_lost() */
        if
        :: atomic { tx[t] == COMMITTED -> tell_final(key, t + 1); goto out }
        :: atomic { tx[t] == UNDONE -> deny(t, key); goto out }
        :: atomic {
            tx[t] == CONFLICT ->
            deny(t, key); tell_final(key, answer[key]); goto out
           }
        :: true -> skip
        fi;
        atomic {
            if
            :: execution == 0 -> execution = 1; goto ask
            :: else -> goto out
            fi
        }
out:    skip
    } unless { dead[me] };
    atomic { inside[me] = false; dead[me] = false; locked = false }
}

#if CRASHES > 0
inline orphan(t) {
    if
    :: tx[t] == OPEN -> tx[t] = ORPHAN
    :: else
    fi
}

/* Of the server with the group. */
proctype crash()
{
    if
    :: d_step {
        inside[CALLS] || inside[0] || inside[1] ->
        dead[CALLS] = inside[CALLS]; dead[0] = inside[0]; dead[1] = inside[1];
        alone[0] = false; alone[1] = false;
        orphan(0); orphan(1); orphan(2); orphan(3); orphan(4)
       }
    :: true
    fi
}
#endif

/* I5: when all have ended nobody holds a lock. */
init {
    atomic {
        run database();
        run group();
        run call(0, 0);
        run call(1, 1);
#ifndef NO_RIVAL
        run call(RIVAL, 0);
#endif
#if CRASHES > 0
        run crash();
#endif
    }
    _nr_pr == 2;
    (tx[0] != COMMITTING && tx[0] != ORPHAN && tx[1] != COMMITTING &&
     tx[1] != ORPHAN && tx[2] != COMMITTING && tx[2] != ORPHAN);
    (tx[3] != COMMITTING && tx[3] != ORPHAN && tx[4] != COMMITTING &&
     tx[4] != ORPHAN && tx[5] != COMMITTING && tx[5] != ORPHAN &&
     tx[6] != COMMITTING && tx[6] != ORPHAN);
    assert(lock[0] == 0 && lock[1] == 0 && lock[2] == 0 && lock[3] == 0)
}
