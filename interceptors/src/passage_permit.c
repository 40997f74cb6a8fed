#include "passage.h"

#include "limit.h"
#include "once_verdict.h"

/* The server's limit, between the calls of a key and the authority: whoever
 * only waits for another call's answer, or gets it out of memory or Redis, is
 * not among those who are counted. */

static void
called(struct permit *permit)
{
    struct passage *passage = CONTAINER(struct passage, permit, permit);

    flights_kick(&passage->once->flights, &passage->flight);
}

static void
stand_in_line(struct passage *passage)
{
    passage->in_line = true;
    passage_nap_until(passage, INT64_MAX);
}

/* Who has napped for another process naps on when there is no room to ask: it
 * asked already, and cannot say that nothing happened. */
static void
turn_away(struct passage *passage)
{
    if (passage->naps > 0) {
        passage_wait_for_other(passage);
        return;
    }
    limit_shed(passage->once->limit, passage->call, passage->effect);
    passage_leave(passage, NULL);
}

bool
passage_admit(struct passage *passage)
{
    struct limit *limit = passage->once->limit;

    if (!limit || passage->admitted)
        return true;
    passage->permit.called = called;
    switch (limit_take(limit, passage->call, &passage->permit,
                       passage->naps == 0)) {
    case PERMIT_TAKEN:
        passage->admitted = true;
        return true;
    case PERMIT_IN_LINE:
        stand_in_line(passage);
        return false;
    case PERMIT_NO_ROOM:
        break;
    }
    turn_away(passage);
    return false;
}

bool
passage_end_line(struct passage *passage)
{
    struct limit *limit = passage->once->limit;

    if (!passage->in_line)
        return true;
    switch (permits_place(&limit->permits, &passage->permit)) {
    case PERMIT_HELD:
        passage->in_line = false;
        passage->admitted = true;
        return true;
    case PERMIT_OUT:
        verdict_stopped(passage);
        passage_leave(passage, NULL);
        return false;
    case PERMIT_FOR_METHOD:
    case PERMIT_FOR_SERVER:
        break;
    }
    stand_in_line(passage);
    return false;
}

void
passage_inherit(struct passage *passage)
{
    struct limit *limit = passage->once->limit;

    if (!limit)
        return;
    limit_take_over(limit, passage->call, &passage->permit);
    passage->admitted = true;
}

void
passage_give_back(struct passage *passage)
{
    if (passage->admitted || passage->in_line)
        limit_end(passage->once->limit, passage->call, &passage->permit);
    passage->admitted = passage->in_line = false;
}
