#ifndef STORE_POSTGRES_SQL_H
#define STORE_POSTGRES_SQL_H

#include "store_postgres_link.h"

/* The statements of the store, each prepared on a connection when it is used
 * there first (decision 62). Tables are named
 * with their schema, so that a handler's search_path does not mislead them; a
 * statement's name is a checksum of its text, so that two versions of this
 * library behind one pooler do not run each other's (case B079). */

enum statement {
    SQL_ROLLBACK,
    SQL_LOCK,         /* $1 lock: is it ours? */
    SQL_LOCK_LIMITED, /* … $2 statement, $3 idle in transaction, ms */
    SQL_LOCK_SHARED,  /* $1 lock */
    SQL_PATIENT,      /* $1 statement, ms: locks are waited for as long */
    SQL_NOTE_WINDOW,  /* $1 day, $2 window ms: the day's, 0 rows: no day */
    SQL_WATERMARK,    /* $1 session: acked */
    SQL_NUMBER, /* $1 session, $2 number: 22012 when it was acknowledged */
    SQL_SHARE_NUMBERS, /* the same of many: arrays */
    SQL_SHARE_STALE,   /* as that: the number, from 1, of each that was */
    SQL_ACKNOWLEDGE, /* $1 session, $2 below, $3 gone at, ms: acked, if moved */
    SQL_BY_KEYS,     /* plans of joins are made key by key from here */
    SQL_FORGET,      /* $1 keys, $2 how many: the records that are DONE */
    SQL_READ,        /* now in ms; plans are made as handlers want them */
    SQL_SAVE,        /* a savepoint in front of a handler of a group … */
    SQL_UNDO,        /* … back to it */
    SQL_SHARE_LOCK,  /* $1 locks, an array: the number, from 1, of each that is
                      * somebody else's; the others are ours */
    SQL_SHARE_BY_KEY, /* plans are made key by key from here … */
    SQL_SHARE_BEGIN,  /* … to here, then as handlers' statements want them; $1
                       * statement, $2 lock, ms: first_at of all records */
    SQL_SHARE_NOW,    /* first_at of all records */
    SQL_OPAQUE,       /* those below have a twin for opaque keys */
    SQL_LOOK = SQL_OPAQUE, /* record.c reads it */
    SQL_LOOK_ABSENT,       /* $1 key, $2 end of its window, $3 day: has it no
                            * record, and may begin? Then as SQL_READ */
    SQL_TAKE,              /* RELEASED or lapsed, begun as it was read, or to be
                            * probed in DOUBT: token, executions */
    SQL_HOLD,              /* a lapsed one becomes DOUBT */
    SQL_COMPLETE,          /* by the token's owner: first_at */
    SQL_RECORD,            /* insert as DONE; $14 first_at in ms */
    SQL_RELEASE,
    SQL_COUNT,         /* insert as RELEASED, executed once */
    SQL_EXPIRE,        /* insert as RELEASED, never executed, or fence that */
    SQL_DOUBT_UNSEEN,  /* insert or make DOUBT, whatever is there but DONE */
    SQL_ABANDON,       /* insert as ABANDONED */
    SQL_ABANDON_AGAIN, /* a released one, a lapsed one that is not begun */
    SQL_SETTLE,        /* one in doubt, with its audit */
    SQL_EACH,          /* of many keys at once; each parameter an array */
    SQL_EACH_LOOK = SQL_EACH, /* as SQL_LOOK, then the key */
    SQL_EACH_CLAIM,           /* insert as RUNNING; the key of what was */
    SQL_EACH_CLAIM_NEW,       /* the same; 23505 when one has a record */
    SQL_EACH_COMPLETE,        /* these by the token's owner: the key of what
                               * was changed; first_at. A key that has no record
                               * is 22012 */
    SQL_EACH_RELEASE,
    SQL_EACH_DOUBT,
    SQL_EACH_RENEW,
    SQL_EACH_MARK,    /* begun, at this step */
    SQL_SHARE_LOOK,   /* $1 keys, $2 ends of their windows, $3 days: the number,
                       * from 1, of each that has a record or may not begin */
    SQL_SHARE_RECORD, /* insert as DONE: $1 to $8 as of a claim, $9 to $13 the
                       * answer, all arrays. Fails when a rival was first, or a
                       * window is over (22012) */
    SQL_ONE, /* as those of many, for one key; no parameter is an array */
    SQL_ONE_CLAIM = SQL_ONE,
    SQL_ONE_CLAIM_NEW,
    SQL_ONE_COMPLETE,
    SQL_ONE_RECORD, /* first_at */
    SQL_STATEMENTS,
};

/* The statements' texts, but for their marks (store_postgres_marks.c). */
extern const char *const pg_templates[SQL_STATEMENTS];

struct statements {
    char *names[SQL_STATEMENTS][2]; /* by opaque */
    char *texts[SQL_STATEMENTS][2];
    bool *prepared; /* on this connection; at names' places */
};

/* False: out of memory. */
bool pg_statements_init(struct statements *statements, const char *schema)
    IDEM_MUST_CHECK;
void pg_statements_fini(struct statements *statements);

#endif
