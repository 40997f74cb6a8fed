/* Mode LEASED: the record of one key, two servers, Redis, and whoever calls.
 *
 * What is here and what is not: docs/model.md. Each step names the place that
 * it stands for as file.c:function(); tests/model/check holds that these are
 * there. One statement of the database is one step; whatever lies between two
 * steps may be interrupted by all others, or by the end of the server.
 *
 *   -DPOLICY=HOLD | STEPS | REEXECUTE   after_crash; STEPS: HOLD with marks
 *   -DCALLS=n                           calls with the key, on both servers
 *   -DCRASHES=n                         ends of a server, by kill -9
 *   -DLOSSES=n                          answers of the database that are lost
 *   -DABANDON, -DSETTLE, -DREDIS        with a sender who gives the key up; an
 *                                       operator; a Redis that knows answers
 *   -DBREAK_x                           a rule that is not kept: a bug that the
 *                                       model must find
 */
#define HOLD 0
#define STEPS 1
#define REEXECUTE 2

#ifndef POLICY
#define POLICY HOLD
#endif
#ifndef CALLS
#define CALLS 3
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#define SERVERS 2

/* Answers: 1 … CALLS is what the execution of that call said. */
#define NEVER_RAN 14 /* the final no of a key that was abandoned */
#define FOREIGN 15   /* the answer of another key, or noise */

mtype:place = { ABSENT, RUNNING, RELEASED, DONE, DOUBT, ABANDONED };
mtype:word = {
    MINE, SAYS_DONE, SAYS_RUNNING, SAYS_DOUBT, SAYS_ABANDONED, CHANGED, FENCED,
    FAILED, SAYS_ABSENT
};
mtype:ending = { OK, FINAL_NO, AGAIN_LATER, UNSURE };

/* --- The record: PostgreSQL, whose statements are atomic --- */

mtype:place state = ABSENT;
byte token, owner, answer;
bool lapsed; /* RUNNING: the lease is over by the database's clock */
bool begun;  /* RUNNING: a step was marked, or the claim was the mark */

/* --- Two servers and the calls on them --- */

byte losses; /* answers of the database that were lost */
#define lose() (losses < LOSSES)

byte first[SERVERS]; /* flight.c: the key's only call that may ask; 0: none */
byte lost[SERVERS];  /* store_postgres_lost.c: an owner that never began */
#define home(call) (1 - (call) % 2) /* which server it came to */
bool inside[CALLS + 1], dead[CALLS + 1], waits[CALLS + 1];
byte shared[CALLS + 1]; /* the answer that the first one left behind */
bool says_no[CALLS + 1]; /* the execution of that call ended with a final no */
bool filled[CALLS + 1];  /* Redis has been told that answer, and may say it */

/* --- What the world saw --- */

byte effects;  /* in the other house */
byte told;     /* the final answer that somebody was told */
bool told_no;  /* it was a final no */

/* I2: final answers of a key are one answer. I6: it is the key's own. I10: an
 * effect that is told is there. */
inline tell_final(a) {
    assert(a != FOREIGN);
    assert(told == 0 || told == a);
    told = a;
    if
    :: a == NEVER_RAN || says_no[a] ->
        told_no = true;
        assert(POLICY == REEXECUTE || effects == 0)
    :: else -> assert(effects > 0)
    fi
}

/* I2: who asks when a final answer was told is not told of a doubt. */
inline tell_doubt() { assert(!is_late) }

/* I1: without leave to run again there is one effect; with it the other house
 * de-duplicates on the derived key. I3: none after a final no. */
inline act() {
    effects = (effects < 2 -> effects + 1 : effects);
    assert(POLICY == REEXECUTE || effects == 1);
    assert(POLICY == REEXECUTE || !told_no)
}

/* The lease of who runs may be over whenever the database looks at it. */
inline pass_time() {
    if
    :: state == RUNNING -> lapsed = true
    :: true
    fi
}

/* record.c:record_claim(), by the row that was read. */
inline judge_claim() {
    if
    :: seen == ABSENT || seen == RELEASED -> verdict = MINE
    :: seen == DONE -> verdict = SAYS_DONE
    :: seen == DOUBT -> verdict = SAYS_DOUBT
    :: seen == ABANDONED -> verdict = SAYS_ABANDONED
    :: seen == RUNNING && !seen_lapsed -> verdict = SAYS_RUNNING
#ifdef BREAK_LEASE_WITHOUT_END
    :: seen == RUNNING && seen_lapsed -> verdict = SAYS_RUNNING
#else
    :: seen == RUNNING && seen_lapsed &&
       (POLICY == REEXECUTE || !seen_begun) -> verdict = MINE
    :: seen == RUNNING && seen_lapsed && POLICY != REEXECUTE && seen_begun ->
        verdict = SAYS_DOUBT
#endif
    fi
}

/* store_postgres_step.c:pg_find() */
inline look() {
    pass_time();
    seen = state; seen_token = token; seen_lapsed = lapsed; seen_begun = begun
}

/* store_postgres_slot.c:move() when absent, take_over() else: compare and
 * set on what was read. */
inline take() {
    if
#ifdef BREAK_TAKE_WITHOUT_COMPARE
    :: state != DONE && state != ABANDONED && state != DOUBT ->
#else
    :: state == seen && token == seen_token &&
       (state != RUNNING || (lapsed && begun == seen_begun)) ->
#endif
        state = RUNNING; token++; owner = nonce; lapsed = false;
        begun = POLICY != STEPS;
        mine = token
    :: else -> verdict = CHANGED
    fi
}

/* store_postgres_step.c:pg_hold() */
inline hold() {
    if
    :: state == RUNNING && token == seen_token && lapsed -> state = DOUBT
    :: else -> verdict = CHANGED
    fi
}

/* store_postgres_slot.c:decide(): look, then one conditional write.
 * again: a row with our nonce is our own claim, whose answer was lost. */
inline claim() {
    do
    :: atomic {
        look();
        if
        :: again && state == RUNNING && owner == nonce ->
            verdict = MINE; mine = token; seen = DONE /* nothing to write */
        :: else -> judge_claim()
        fi
       }
       if
       :: verdict == MINE && seen != DONE -> atomic { take() }
       :: verdict == SAYS_DOUBT && seen == RUNNING -> atomic { hold() }
       :: else
       fi;
       if
       :: verdict == CHANGED -> skip
       :: else -> break
       fi
    od;
    seen = ABSENT; seen_token = 0; seen_lapsed = false; seen_begun = false
}

/* store_postgres_slot.c:recognize(). Fenced by the token; also from
 * DOUBT, by its own. A repeat after a lost answer knows its own doing. */
inline complete() {
    atomic {
        if
#ifdef BREAK_COMPLETE_WITHOUT_FENCE
        :: true ->
#else
        :: token == mine && (state == RUNNING || state == DOUBT) ->
#endif
            state = DONE; answer = me; verdict = MINE; lapsed = false
        :: token == mine && state == DONE -> verdict = MINE
        :: else -> verdict = FENCED
        fi
    }
}

/* store_postgres_slot.c:recognize(), for release and doubt */
inline let_go(to) {
    atomic {
        if
#ifdef BREAK_RELEASE_WITHOUT_FENCE
        :: state == RUNNING || state == DOUBT ->
#else
        :: token == mine && (state == RUNNING || state == DOUBT) ->
#endif
            state = to; verdict = MINE; lapsed = false
        :: token == mine && state == to -> verdict = MINE
        :: else -> verdict = FENCED
        fi
    }
}

/* store_postgres_slot.c:pg_slot_answer(), whenever renewal.c asks. */
inline renew() {
    if
    :: token == mine && state == RUNNING -> lapsed = false
    :: true
    fi
}

/* store_postgres_slot.c:pg_slot_answer() */
inline mark() {
    atomic {
        pass_time();
        if
#ifdef BREAK_MARK_WITHOUT_FENCE
        :: true -> begun = true; verdict = MINE
#else
        :: token == mine && state == RUNNING && !lapsed ->
            begun = true; verdict = MINE
#endif
        :: token != mine || state != RUNNING || lapsed -> verdict = FENCED
        fi
    }
}

/* flight.c:flights_leave(): all that wait get the answer; without one the next
 * in line is the first. */
inline leave(a) {
    d_step {
        assert(first[at] == me);
        first[at] = 0;
        i = 1;
        do
        :: i > CALLS -> break
        :: else ->
            if
            :: waits[i] && home(i) == at && a != 0 ->
                waits[i] = false; shared[i] = a
#ifndef BREAK_NO_HEIR
            :: waits[i] && home(i) == at && a == 0 && first[at] == 0 ->
                waits[i] = false; first[at] = i
#endif
            :: else
            fi;
            i++
        od;
        i = 0
    }
}

/* passage_shield.c:passage_fill(), behind the database's word. Redis may say
 * what it was told at any time from here, or never. */
inline fill(a) { filled[a] = true }

/* shield.c:idem_shield_look(): any bytes. Only an entry of this key that was
 * filled verifies; the rest is as if nothing were there. */
inline ask_redis() {
    if
    :: said = 0
    :: said = FOREIGN
#ifdef REDIS
    :: filled[1] -> said = 1
#if CALLS > 1
    :: filled[2] -> said = 2
#endif
#if CALLS > 2
    :: filled[3] -> said = 3
#endif
#if CALLS > 3
    :: filled[4] -> said = 4
#endif
#endif
    fi
}

/* One attempt with the key, from its server's door to its answer. What only
 * this call can see is one step with what follows. */
proctype call(byte me; byte at)
{
    mtype:word verdict;
    mtype:ending outcome;
    mtype:place seen = ABSENT;
    byte nonce, mine, seen_token, said, i;
    bool again, seen_lapsed, seen_begun, is_late;

    {
        /* passage.c:passage_enter(), flight.c:flights_join() */
        atomic {
            inside[me] = true;
            is_late = told != 0;
            if
            :: first[at] == 0 -> first[at] = me
            :: else -> waits[me] = true
            fi
        }
        if
        :: atomic { first[at] == me }
        :: atomic {
            shared[me] != 0 -> tell_final(shared[me]); shared[me] = 0
           } goto out
        /* passage.c:end_wait(): a call that waits has somebody to wait for. */
        :: atomic { waits[me] -> waits[me] = false; assert(first[at] != 0) }
           goto out
        fi;

        /* passage_shield.c:passage_look(): repeats; a first attempt does not.
         */
        if
        :: true
        :: atomic {
            ask_redis();
            if
#ifdef BREAK_REDIS_SAYS_YES
            :: said == 0 -> goto handler
#endif
#ifdef BREAK_REDIS_UNVERIFIED
            :: said != 0 -> tell_final(said); leave(said); goto out
#else
            :: said != 0 && said != FOREIGN ->
                tell_final(said); leave(said); goto out
            :: said == FOREIGN -> said = 0
#endif
            :: said == 0
            fi }
        fi;

        /* store_postgres_slot.c:pg_slot_init(): a nonce of its own, or that of a
         * claim whose connection was lost for good. */
ask:    atomic {
            again = lost[at] != 0;
            nonce = (again -> lost[at] : me);
            lost[at] = 0
        }
        claim();
        atomic {
            if
            :: verdict == MINE ->
                if
                :: true
                :: lose() -> losses++; again = true
                :: lose() -> losses++; lost[at] = nonce; leave(0); goto out
                fi
            :: else -> again = false
            fi
        }
        if
        :: again && verdict == MINE -> claim(); again = false
        :: else
        fi;

        /* passage.c:passage_judge() */
        atomic {
            nonce = 0;
            if
            :: verdict == MINE -> skip
            :: verdict == SAYS_DONE ->
                said = answer; fill(said); tell_final(said); leave(said);
                goto out
            :: verdict == SAYS_ABANDONED ->
                tell_final(NEVER_RAN); leave(0); goto out
            :: verdict == SAYS_DOUBT -> tell_doubt(); leave(0); goto out
            :: verdict == SAYS_RUNNING ->
                /* passage.c:passage_wait_for_other(): a nap, or enough of it */
                if
                :: goto ask
                :: leave(0); goto out
                fi
            fi
        }
handler:
        /* step.c:idem_step() */
        if
        :: POLICY == STEPS ->
            mark();
            atomic {
                if
                :: verdict == MINE
                :: verdict == FENCED || lose() ->
                    losses = (verdict == FENCED -> losses : losses + 1);
                    outcome = AGAIN_LATER
                fi
            }
        :: else
        fi;
        atomic {
            if
            :: outcome == AGAIN_LATER -> skip
            :: else ->
                renew();
                if
                :: act(); outcome = OK
                :: act(); outcome = UNSURE
                :: outcome = UNSURE
                :: outcome = AGAIN_LATER
                :: says_no[me] = true; outcome = FINAL_NO
                fi
            fi
        }
        /* passage_finish.c:passage_finish() */
        if
        :: outcome == OK || outcome == FINAL_NO ->
#ifdef BREAK_FILL_FIRST
            fill(me);
#endif
            complete();
            atomic {
                if
                :: true
                :: lose() -> losses++; again = true
                :: lose() -> losses++; leave(0); outcome = UNSURE /* the store
                                        * is away: the caller is IN_DOUBT */
                fi
            }
            if
            :: again || outcome == UNSURE ->
                complete() /* late.c:late_start() */
            :: else
            fi;
            atomic {
                if
                :: outcome == UNSURE -> goto out
                :: outcome != UNSURE && verdict == MINE ->
                    fill(me); tell_final(me); leave(me); goto out
                :: else
                fi
            }
        :: outcome == AGAIN_LATER -> let_go(RELEASED)
        :: outcome == UNSURE -> let_go(DOUBT)
        fi;
        atomic {
            if
            :: verdict == MINE -> leave(0); goto out
            :: verdict == FENCED -> skip
            fi
        }
        /* passage_finish.c:be_fenced(): a look, never a claim */
        atomic {
            look();
            said = (state == DONE -> answer : 0);
            if
            :: state == DONE -> tell_final(answer)
            :: state == ABANDONED -> tell_final(NEVER_RAN)
            :: state == DOUBT -> tell_doubt()
            :: else
            fi;
            leave(said)
        }
out:    skip
    } unless { dead[me] };
    atomic {
        inside[me] = false; dead[me] = false; shared[me] = 0;
        verdict = 0; outcome = 0; seen = 0; seen_token = 0; nonce = 0;
        mine = 0; said = 0; i = 0; again = false; is_late = false;
        seen_lapsed = false; seen_begun = false
    }
}

/* store_postgres_look.c:pg_abandon(): the sender gives the key up. */
proctype abandon()
{
    mtype:place seen;
    byte seen_token;
    bool seen_lapsed, seen_begun, done;
    bool is_late = told != 0;

    do
    :: done -> break
    :: else ->
        atomic { look(); done = true }
        if
        :: seen == DONE -> atomic { tell_final(answer) }
        :: seen == ABANDONED -> atomic { tell_final(NEVER_RAN) }
        :: seen == DOUBT -> atomic { tell_doubt() }
        :: seen == RUNNING && !seen_lapsed -> skip
        :: seen == RUNNING && seen_lapsed && seen_begun -> atomic {
            if
            :: state == RUNNING && token == seen_token && lapsed ->
                state = DOUBT
            :: else -> done = false
            fi }
        :: seen == ABSENT || seen == RELEASED ||
           (seen == RUNNING && seen_lapsed && !seen_begun) -> atomic {
            /* store_postgres_look.c:pg_write_abandoned() */
            if
#ifdef BREAK_ABANDON_WITHOUT_FENCE
            :: true ->
#else
            :: state == seen && token == seen_token &&
               (state != RUNNING || (lapsed && !begun)) ->
#endif
                state = ABANDONED; token++; lapsed = false;
                tell_final(NEVER_RAN)
            :: else -> done = false
            fi }
        fi
    od
}

/* kill -9: every call of the process ends where it stands, its table is empty;
 * another process listens in its place. */
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
        first[at] = 0;
        lost[at] = 0;
        d_step {
        i = 1;
        do
        :: i > CALLS -> break
        :: else ->
            if
            :: inside[i] && home(i) == at -> dead[i] = true; waits[i] = false
            :: else
            fi;
            i++
        od;
        i = 0; at = 0
        } }
    :: times > 0 -> break
    od
}

/* operator.c: settles what is in doubt when he has seen that nothing of it runs
 * any more (store_postgres_settle.c:pg_settle()). */
proctype settle()
{
    byte i;

    atomic {
        if
        :: state == DOUBT && !inside[1] && !inside[2] &&
           (CALLS < 3 || !inside[3]) ->
            token++;
            if
            :: effects > 0 -> i = 1;
                do
                :: i == CALLS || (i < CALLS && !says_no[i]) -> break
                :: else -> i++
                od;
                state = DONE; answer = i; says_no[i] = false
            :: else -> state = RELEASED
            fi
        :: true
        fi
    }
}

/* I5: when all have ended and every lease is over, whoever comes is told what
 * became of the key, or runs it: nobody says that it is running. */
init {
    mtype:word verdict;
    mtype:place seen;
    byte seen_token;
    bool seen_lapsed, seen_begun;

    atomic {
        run call(1, 0);
        run call(2, 1);
#if CALLS > 2
        run call(3, 0);
#endif
#if CALLS > 3
        run call(4, 1);
#endif
#ifdef ABANDON
        run abandon();
#endif
#if CRASHES > 0
        run crash();
#endif
#ifdef SETTLE
        run settle();
#endif
    }
    _nr_pr == 1;
    atomic {
        lapsed = state == RUNNING;
        seen = state; seen_token = token; seen_lapsed = lapsed;
        seen_begun = begun;
        judge_claim();
        assert(verdict != SAYS_RUNNING)
    }
}
