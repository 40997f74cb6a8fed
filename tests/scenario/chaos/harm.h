#ifndef HARM_H
#define HARM_H

#include "calls.h"
#include "dice.h"
#include "site.h"

/* What is done to a site, one harm after another, each undone when the function
 * returns; but a clock stays wrong. Only the thread that opened the site. */

/* The kinds, in the order of the table that is printed. */
#define HARM_LIST(X)                                                           \
    X(KILL_SERVER, kill_server, "server killed")                               \
    X(FREEZE_SERVER, freeze_server, "server frozen for a while")               \
    X(RESTART_POSTGRES, restart_postgres, "PostgreSQL ended at once")          \
    X(END_BACKENDS, end_backends, "all backends terminated")                   \
    X(BREAK_LINKS, break_links, "links to PostgreSQL broken")                  \
    X(CUT_COMMIT, cut_commit, "links cut behind a COMMIT")                     \
    X(CUT_BEFORE, cut_before, "links cut before a COMMIT")                     \
    X(HOLD_LINKS, hold_links, "PostgreSQL silent for a while")                 \
    X(FLUSH_REDIS, flush_redis, "Redis flushed")                               \
    X(RESTART_REDIS, restart_redis, "Redis killed")                            \
    X(FREEZE_REDIS, freeze_redis, "Redis frozen for a while")                  \
    X(DEMOTE_REDIS, demote_redis, "Redis a replica for a while")               \
    X(FAIL_REDIS_OVER, fail_redis_over, "Redis failed over")                   \
    X(STEP_CLOCKS, step_clocks, "clocks stepped")

enum harm {
#define HARM_ENUM(name, function, text) HARM_##name,
    HARM_LIST(HARM_ENUM)
#undef HARM_ENUM
        HARMS,
};

/* Do the next one that the dice say, while the calls go on. */
enum harm harm_do(struct site *site, struct calls *calls, struct dice *dice);

/* "server killed" */
const char *harm_text(enum harm harm);

#endif
