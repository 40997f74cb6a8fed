#include "support.h"

#include "child.h"
#include "loopback.h"
#include "postgres.h"
#include "redis.h"
#include "tcp_proxy.h"

#include <libpq-fe.h>
#include <string.h>

/* The private servers that other tests stand on. */

static bool
works(const char *conninfo)
{
    PGconn *conn = PQconnectdb(conninfo);
    PGresult *result = PQexec(conn, "SELECT 'needle'");
    bool ok = PQresultStatus(result) == PGRES_TUPLES_OK;

    PQclear(result);
    PQfinish(conn);
    return ok;
}

static void
postgres_comes_back_after_each_kind_of_end(void **state)
{
    const struct postgres_options options = {.durable = true};
    struct postgres *postgres = postgres_start(&options);

    (void)state;
    postgres_sql(postgres, "CREATE TABLE t (x int)");
    postgres_sql(postgres, "INSERT INTO t VALUES (%d)", 7);
    postgres_stop(postgres);
    postgres_restart(postgres);
    postgres_crash(postgres);
    postgres_restart(postgres);
    postgres_kill(postgres);
    assert_false(works(postgres_conninfo(postgres)));
    postgres_restart(postgres);
    assert_int_equal(postgres_sql(postgres, "SELECT x FROM t"), 7);
    postgres_free(postgres);
}

static void
redis_freezes_thaws_and_restarts(void **state)
{
    struct redis *redis = redis_start("maxmemory 10mb\n");
    char reply[64];

    (void)state;
    redis_say(redis, "SET a 1", reply, sizeof(reply));
    assert_string_equal(reply, "+OK\r\n");
    redis_freeze(redis);
    redis_thaw(redis);
    redis_say(redis, "GET a", reply, sizeof(reply));
    assert_string_equal(reply, "$1\r\n1\r\n");
    redis_restart(redis);
    redis_say(redis, "GET a", reply, sizeof(reply));
    assert_string_equal(reply, "$-1\r\n");
    redis_free(redis);
}

static void
the_proxy_cuts_what_it_is_told_to(void **state)
{
    struct postgres *postgres = postgres_start(NULL);
    struct tcp_proxy *proxy = tcp_proxy_start(postgres_port(postgres));
    const char *there = postgres_conninfo_at(postgres, tcp_proxy_port(proxy));

    (void)state;
    assert_true(works(there));
    tcp_proxy_cut(proxy, TCP_PROXY_CUT_AFTER, "needle", 1);
    assert_false(works(there));
    assert_int_equal(tcp_proxy_cuts(proxy), 1);
    assert_true(works(there));
    tcp_proxy_refuse(proxy, 1);
    assert_false(works(there));
    tcp_proxy_refuse(proxy, 0);
    assert_true(works(there));
    tcp_proxy_free(proxy);
    postgres_free(postgres);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(postgres_comes_back_after_each_kind_of_end),
        cmocka_unit_test(redis_freezes_thaws_and_restarts),
        cmocka_unit_test(the_proxy_cuts_what_it_is_told_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
