/* Mode TRANSACTION: the record of one key commits with what its handler wrote.
 *
 * What is here and what is not: docs/model.md. Each step names the place that
 * it stands for as file.c:function(); tests/model/check holds that these are
 * there. An answer is the number of the backend that recorded it, and one.
 *
 *   -DCALLS=n          calls with the key, on two servers in turn
 *   -DCRASHES=n        ends of a server, by kill -9
 *   -DRESTARTS=n       immediate ends of the database
 *   -DABANDON          with a sender who gives the key up
 *   -DNO_ALONE         a "no" is recorded without the lock, behind a rollback
 *                      (READ COMMITTED), not behind a savepoint
 *   -DLOCKS_DIFFER     the servers disagree on the number of the key's lock
 *                      (fault 86): it is no part of the safety argument
 *   -DBREAK_x          a rule that is not kept: a bug that the model must find
 */
#ifndef CALLS
#define CALLS 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#define SERVERS 2
#define EXECUTIONS 2 /* of one call: after a lost commit it asks again */
#define BACKENDS (CALLS * EXECUTIONS)
#define NEVER_RAN 14
#ifdef NO_ALONE
#define may_still_be_said(b) says_no[b]
#else
#define may_still_be_said(b) false
#endif

#ifdef LOCKS_DIFFER
#define lock_of(server) (server)
#else
#define lock_of(server) 0
#endif

mtype:place = { ABSENT, DONE, ABANDONED };
mtype:phase = { FREE, OPEN, ORPHAN, COMMITTING, COMMITTED, CONFLICT, UNDONE };
mtype:ending = { OK, FINAL_NO, AGAIN_LATER };

/* --- PostgreSQL --- */

mtype:place state = ABSENT; /* what is committed */
byte answer;
byte lock[SERVERS]; /* pg_try_advisory_xact_lock: a backend + 1; 0: free */
mtype:phase backend[BACKENDS] = FREE;
bool wrote[BACKENDS];  /* the handler's effect, not committed yet */
bool failed[BACKENDS]; /* a statement of it has failed */
bool denied[BACKENDS]; /* the caller was told that it was rolled back */

bool inside[CALLS + 1], dead[CALLS + 1];

/* --- What the world saw --- */

byte effects, told;
bool told_no;
bool says_no[BACKENDS]; /* what the handler answers is a final no */

/* I2, I3, I10: one final answer; behind a yes is one effect, behind a no none.
 */
inline tell_final(a) {
    assert(told == 0 || told == a);
    told = a;
    told_no = (a == NEVER_RAN -> true : says_no[a - 1]);
    assert(effects == (told_no -> 0 : 1))
}

/* The word ROLLED_BACK is kept: what it was said of never takes effect. A "no"
 * of before, whose COMMIT was lost, may still be recorded. */
inline tell_rolled_back() {
    denied[base] = true;
    denied[base + 1] = true;
    assert(backend[base] != COMMITTED || may_still_be_said(base));
    assert(backend[base + 1] != COMMITTED || may_still_be_said(base + 1))
}

inline unlock(b) {
    if
    :: lock[0] == b + 1 -> lock[0] = 0
    :: else
    fi;
    if
    :: lock[1] == b + 1 -> lock[1] = 0
    :: else
    fi
}

/* A transaction ends without a trace. */
inline undo(b, as) {
    backend[b] = as; wrote[b] = false; failed[b] = false; unlock(b)
}

/* I1 */
inline note_effect() { effects++; assert(effects == 1); assert(!told_no) }

/* store_postgres_commit.c:commit() as the backend does it: the record by an
 * INSERT that waits for a rival's and fails behind it, then COMMIT, whose tag
 * tells whether it was one. */
inline end(b) {
    if
    :: failed[b] -> undo(b, UNDONE)
#ifdef BREAK_NO_UNIQUE
    :: !failed[b] ->
#else
    :: !failed[b] && state != ABSENT -> undo(b, CONFLICT)
    :: !failed[b] && state == ABSENT ->
#endif
        assert(!denied[b] || may_still_be_said(b));
        state = DONE; answer = b + 1;
        if
        :: wrote[b] -> note_effect()
        :: else
        fi;
        undo(b, COMMITTED)
    fi
}

/* A backend goes on by itself: it commits what it was told to, also when nobody
 * listens any more, and sees later that its client is gone (semantics.md M1,
 * M9). The database may end at once, and with it all that is not committed. */
proctype database()
{
    byte i;
    byte times = RESTARTS;

end_here:
    do
    :: atomic { backend[0] == COMMITTING -> end(0) }
    :: atomic { backend[1] == COMMITTING -> end(1) }
    :: atomic { backend[2] == COMMITTING -> end(2) }
    :: atomic { backend[3] == COMMITTING -> end(3) }
    :: atomic { backend[0] == ORPHAN -> undo(0, UNDONE) }
    :: atomic { backend[1] == ORPHAN -> undo(1, UNDONE) }
    :: atomic { backend[2] == ORPHAN -> undo(2, UNDONE) }
    :: atomic { backend[3] == ORPHAN -> undo(3, UNDONE) }
#if CALLS > 2
    :: atomic { backend[4] == COMMITTING -> end(4) }
    :: atomic { backend[5] == COMMITTING -> end(5) }
    :: atomic { backend[4] == ORPHAN -> undo(4, UNDONE) }
    :: atomic { backend[5] == ORPHAN -> undo(5, UNDONE) }
#endif
    :: d_step {
        times > 0 ->
        times--;
        i = 0;
        do
        :: i == BACKENDS -> break
        :: else ->
            if
            :: backend[i] == OPEN || backend[i] == COMMITTING ||
               backend[i] == ORPHAN -> undo(i, UNDONE)
            :: else
            fi;
            i++
        od;
        i = 0
       }
    od
}

/* One attempt with the key. base is its first backend. */
proctype call(byte me; byte at; byte base)
{
    mtype:ending outcome;
    byte execution, b;
    bool locked;

    {
        inside[me] = true;

        /* store_postgres_transaction.c:open_and_decide(): the lock is tried in
         * one statement, the record is read in the next one (M5). */
ask:    atomic {
            b = base + execution;
            backend[b] = OPEN;
            locked = lock[lock_of(at)] == 0;
            if
            :: locked -> lock[lock_of(at)] = b + 1
            :: else
            fi
        }
        atomic {
            if
            :: backend[b] != OPEN -> goto out /* the database ended */
            :: backend[b] == OPEN && state == DONE ->
                undo(b, FREE); tell_final(answer); goto out
            :: backend[b] == OPEN && state == ABANDONED ->
                undo(b, FREE); tell_final(NEVER_RAN); goto out
            :: backend[b] == OPEN && state == ABSENT && !locked ->
                undo(b, FREE);
                /* passage.c:passage_wait_for_other() */
                if
                :: goto ask
                :: goto out
                fi
            :: backend[b] == OPEN && state == ABSENT && locked -> skip
            fi
        }

        /* The handler, in the transaction. It may swallow a statement's error
         * and say OK. */
        atomic {
            if
            :: backend[b] != OPEN -> skip
            :: backend[b] == OPEN ->
#ifdef BREAK_EFFECT_OUTSIDE
                note_effect(); outcome = OK
#else
                if
                :: wrote[b] = true; outcome = OK
                :: wrote[b] = true; failed[b] = true; outcome = OK
                :: says_no[b] = true; outcome = FINAL_NO
                :: outcome = AGAIN_LATER
                fi
#endif
            fi
        }

        /* store_postgres_commit.c:pg_transaction_complete(), or
         * pg_transaction_release(). The connection may be lost before. */
        atomic {
            if
            :: backend[b] != OPEN -> tell_rolled_back(); goto out
            :: backend[b] == OPEN ->
                if
                :: backend[b] = ORPHAN; tell_rolled_back(); goto out
                :: outcome == AGAIN_LATER ->
                    undo(b, UNDONE); tell_rolled_back(); goto out
                :: outcome == OK -> backend[b] = COMMITTING
                /* store_postgres_commit.c:settle_work() */
                :: outcome == FINAL_NO ->
#ifdef NO_ALONE
                    unlock(b);
#endif
                    backend[b] = COMMITTING
                fi
            fi
        }

        /* store_postgres_commit.c:tell_commit(), tell_rival(), tell_lost() */
        if
        :: atomic { backend[b] == COMMITTED -> tell_final(b + 1); goto out }
        :: atomic {
            backend[b] == UNDONE ->
#ifdef BREAK_TAG_UNREAD
            tell_final(b + 1);
#else
            tell_rolled_back();
#endif
            goto out
           }
        :: atomic {
            backend[b] == CONFLICT ->
            if
            :: state == DONE -> tell_final(answer)
            :: else -> tell_final(NEVER_RAN)
            fi;
            goto out
           }
        :: true -> skip /* the connection was lost with the COMMIT under way */
        fi;

        /* passage_finish.c:completed(): UNKNOWN is asked again by a claim, which
         * waits for the lost one's lock, never by a look. */
        atomic {
#ifdef BREAK_SELECT_FIRST
            if
            :: state == DONE -> tell_final(answer)
            :: state == ABANDONED -> tell_final(NEVER_RAN)
            :: state == ABSENT -> tell_rolled_back()
            fi;
            goto out
#else
            if
            :: execution == 0 -> execution = 1; goto ask
            :: else -> goto out
            fi
#endif
        }
out:    skip
    } unless { dead[me] };
    atomic {
        inside[me] = false; dead[me] = false; outcome = 0; locked = false
    }
}

/* store_postgres_look.c:pg_abandon(), under the shared lock of its server. */
proctype abandon(byte at)
{
    bool done;

    do
    :: done -> break
    :: else ->
        if
        :: lock[lock_of(at)] != 0 -> done = true /* RUNNING */
        :: atomic {
            lock[lock_of(at)] == 0 ->
            done = true;
            if
            :: state == DONE -> tell_final(answer)
            :: state == ABANDONED -> tell_final(NEVER_RAN)
            :: state == ABSENT -> goto write
            fi
           }
        fi;
        goto next;
        /* The shared lock is kept from the look to here, against those that use
         * the same number. */
write:  atomic {
            if
#ifdef BREAK_ABANDON_WITHOUT_UNIQUE
            :: true ->
#else
            :: state == ABSENT ->
#endif
                state = ABANDONED; tell_final(NEVER_RAN)
            :: state != ABSENT -> done = false
            fi
        }
next:   skip
    od
}

proctype crash()
{
    byte i, at;
    byte times = CRASHES;

    do
    :: times == 0 -> break
    :: times > 0 -> atomic {
        times--;
        if
        :: at = 0
        :: at = 1
        fi;
        d_step {
            i = 1;
            do
            :: i > CALLS -> break
            :: else ->
                if
                :: inside[i] && 1 - i % 2 == at ->
                    dead[i] = true;
                    if
                    :: backend[i * 2 - 2] == OPEN -> backend[i * 2 - 2] = ORPHAN
                    :: else
                    fi;
                    if
                    :: backend[i * 2 - 1] == OPEN -> backend[i * 2 - 1] = ORPHAN
                    :: else
                    fi
                :: else
                fi;
                i++
            od;
            i = 0; at = 0
        }
       }
    :: times > 0 -> break
    od
}

/* I5: when all have ended nobody holds the key's lock, so whoever comes may
 * run it or is told what became of it. */
init {
    atomic {
        run database();
        run call(1, 0, 0);
        run call(2, 1, 2);
#if CALLS > 2
        run call(3, 0, 4);
#endif
#ifdef ABANDON
        run abandon(1);
#endif
#if CRASHES > 0
        run crash();
#endif
    }
    _nr_pr == 2;
    (backend[0] != COMMITTING && backend[0] != ORPHAN &&
     backend[1] != COMMITTING && backend[1] != ORPHAN &&
     backend[2] != COMMITTING && backend[2] != ORPHAN &&
     backend[3] != COMMITTING && backend[3] != ORPHAN);
#if CALLS > 2
    (backend[4] != COMMITTING && backend[4] != ORPHAN &&
     backend[5] != COMMITTING && backend[5] != ORPHAN);
#endif
    assert(lock[0] == 0 && lock[1] == 0)
}
