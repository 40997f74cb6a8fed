#include "harm.h"

#include "child.h"

#include <signal.h>

#define CUTS 3
#define DAY_S 86400
#define SERVER_STEP_S (10 * DAY_S) /* either way, at most */
#define CLIENT_STEP_S 1200         /* less than a key's window (calls.c) */

typedef void harm_fn(struct site *site, struct calls *calls, struct dice *dice);

static void
kill_server(struct site *site, struct calls *calls, struct dice *dice)
{
    unsigned server = dice_roll(dice, SITE_SERVERS);

    (void)calls;
    child_stop(site->servers[server].pid, SIGKILL);
    site_start(site, server);
}

/* Mostly past its leases of 0.9 s. */
static void
freeze_server(struct site *site, struct calls *calls, struct dice *dice)
{
    unsigned server = dice_roll(dice, SITE_SERVERS);

    kill(site->servers[server].pid, SIGSTOP);
    (void)calls_wait(calls, 300 + dice_roll(dice, 2000));
    kill(site->servers[server].pid, SIGCONT);
}

static void
restart_postgres(struct site *site, struct calls *calls, struct dice *dice)
{
    (void)calls;
    (void)dice;
    postgres_crash(site->postgres);
    postgres_restart(site->postgres);
}

static void
end_backends(struct site *site, struct calls *calls, struct dice *dice)
{
    (void)calls;
    (void)dice;
    postgres_sql(site->postgres,
                 "SELECT count(pg_terminate_backend(pid)) FROM "
                 "pg_stat_activity WHERE backend_type = 'client backend' "
                 "AND pid <> pg_backend_pid()");
}

static void
break_links(struct site *site, struct calls *calls, struct dice *dice)
{
    (void)calls;
    (void)dice;
    tcp_proxy_break(site->proxy);
}

/* Wait for the cuts, at most a second; what is left is not to cut later. */
static void
cut(struct site *site, struct calls *calls, enum tcp_proxy_cut how)
{
    unsigned wanted = tcp_proxy_cuts(site->proxy) + CUTS;

    tcp_proxy_cut(site->proxy, how, "COMMIT", CUTS);
    for (unsigned i = 0; i < 20 && tcp_proxy_cuts(site->proxy) < wanted; i++)
        (void)calls_wait(calls, 50);
    tcp_proxy_cut(site->proxy, TCP_PROXY_CUT_NEVER, "COMMIT", 0);
}

static void
cut_commit(struct site *site, struct calls *calls, struct dice *dice)
{
    (void)dice;
    cut(site, calls, TCP_PROXY_CUT_AFTER);
}

static void
cut_before(struct site *site, struct calls *calls, struct dice *dice)
{
    (void)dice;
    cut(site, calls, TCP_PROXY_CUT_BEFORE);
}

static void
hold_links(struct site *site, struct calls *calls, struct dice *dice)
{
    tcp_proxy_hold(site->proxy, 1);
    (void)calls_wait(calls, 100 + dice_roll(dice, 1500));
    tcp_proxy_hold(site->proxy, 0);
}

static void
flush_redis(struct site *site, struct calls *calls, struct dice *dice)
{
    char reply[64];

    (void)calls;
    (void)dice;
    redis_say(redis_house_master(site->redis), "FLUSHALL", reply,
              sizeof(reply));
}

/* As long as it takes a Sentinel to make another the master, or not quite. */
static void
restart_redis(struct site *site, struct calls *calls, struct dice *dice)
{
    struct redis *redis = redis_house_master(site->redis);

    redis_kill(redis);
    (void)calls_wait(calls, dice_roll(dice, 500));
    redis_restart(redis);
}

static void
freeze_redis(struct site *site, struct calls *calls, struct dice *dice)
{
    struct redis *redis = redis_house_master(site->redis);

    redis_freeze(redis);
    (void)calls_wait(calls, dice_roll(dice, 500));
    redis_thaw(redis);
}

/* As one that a failover has left behind: it answers, and takes nothing. */
static void
demote_redis(struct site *site, struct calls *calls, struct dice *dice)
{
    struct redis *redis = redis_house_master(site->redis);
    char reply[64];

    redis_say(redis, "REPLICAOF 127.0.0.1 1", reply, sizeof(reply));
    (void)calls_wait(calls, dice_roll(dice, 500));
    redis_say(redis, "REPLICAOF NO ONE", reply, sizeof(reply));
}

/* For a while there are two who believe to be the master. */
static void
fail_redis_over(struct site *site, struct calls *calls, struct dice *dice)
{
    redis_house_rejoin(site->redis);
    redis_house_fail_over(site->redis);
    (void)calls_wait(calls, dice_roll(dice, 1000));
    redis_house_rejoin(site->redis);
}

static void
step(struct stepped_clock *clock, struct dice *dice, int most_s)
{
    int ahead_s = (int)dice_roll(dice, (unsigned)most_s * 2) - most_s;

    stepped_clock_set(clock, (int64_t)ahead_s * 1000);
}

/* What was done is the database's word, whatever a server takes for today; keys
 * are minted by the clients' clock. */
static void
step_clocks(struct site *site, struct calls *calls, struct dice *dice)
{
    (void)calls;
    for (unsigned i = 0; i < SITE_SERVERS; i++)
        step(&site->servers[i].clock, dice, SERVER_STEP_S);
    step(&site->clock, dice, CLIENT_STEP_S);
}

static const struct {
    harm_fn *harm;
    const char *text;
} harms[HARMS] = {
#define HARM_ROW(name, function, text) [HARM_##name] = {function, text},
    HARM_LIST(HARM_ROW)
#undef HARM_ROW
};

enum harm
harm_do(struct site *site, struct calls *calls, struct dice *dice)
{
    enum harm harm = (enum harm)dice_roll(dice, HARMS);

    harms[harm].harm(site, calls, dice);
    return harm;
}

const char *
harm_text(enum harm harm)
{
    return harms[harm].text;
}
