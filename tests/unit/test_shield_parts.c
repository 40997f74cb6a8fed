#include "support.h"

#include "shield_breaker.h"
#include "shield_topology.h"

#include <stdio.h>
#include <string.h>

#define MS INT64_C(1000000)

static struct shield_url
parse(const char *text)
{
    struct shield_url url;
    struct idem_error err = {.message = ""};

    if (shield_url_parse(&url, text, &err) != IDEM_OK)
        fail_msg("%s: %s", text, err.message);
    return url;
}

static void
a_url_says_where_and_how(void **state)
{
    struct shield_url url = parse("redis://127.0.0.1:6380/3");

    (void)state;
    assert_string_equal(url.hosts[0].host, "127.0.0.1");
    assert_string_equal(url.hosts[0].port, "6380");
    assert_string_equal(url.path, "");
    assert_string_equal(url.password, "");
    assert_int_equal(url.db, 3);

    url = parse("redis://cache");
    assert_string_equal(url.hosts[0].host, "cache");
    assert_string_equal(url.hosts[0].port, "6379");
    assert_int_equal(parse("redis://cache/").db, 0);

    url = parse("redis://[::1]:7000/15");
    assert_string_equal(url.hosts[0].host, "::1");
    assert_string_equal(url.hosts[0].port, "7000");
    assert_string_equal(parse("redis://[::1]").hosts[0].host, "::1");
}

static void
a_password_may_have_any_byte(void **state)
{
    struct shield_url url = parse("redis://:p%40ss%2Fw%25rd@cache:1/2");

    (void)state;
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "p@ss/w%rd");
    assert_string_equal(url.hosts[0].host, "cache");

    url = parse("redis://app:a:b@c@cache");
    assert_string_equal(url.user, "app");
    assert_string_equal(url.password, "a:b@c");
}

static void
a_unix_socket_has_a_path(void **state)
{
    struct shield_url url = parse("unix:///run/redis.sock");

    (void)state;
    assert_string_equal(url.path, "/run/redis.sock");
    assert_string_equal(url.hosts[0].host, "");
    url = parse("unix://:secret@/run/redis.sock?db=4");
    assert_string_equal(url.path, "/run/redis.sock");
    assert_string_equal(url.password, "secret");
    assert_int_equal(url.db, 4);
}

static void
sentinels_are_several_and_name_a_master(void **state)
{
    struct shield_url url =
        parse("redis+sentinel://:pw@one,two:7,[::1]:8/main/3");

    (void)state;
    assert_int_equal(url.kind, SHIELD_SENTINEL);
    assert_int_equal(url.n_hosts, 3);
    assert_string_equal(url.hosts[0].host, "one");
    assert_string_equal(url.hosts[0].port, "26379");
    assert_string_equal(url.hosts[1].port, "7");
    assert_string_equal(url.hosts[2].host, "::1");
    assert_string_equal(url.hosts[2].port, "8");
    assert_string_equal(url.master, "main");
    assert_string_equal(url.password, "pw");
    assert_int_equal(url.db, 3);
    assert_int_equal(parse("redis+sentinel://one/main").db, 0);
    assert_string_equal(parse("redis+sentinel://one/main").sentinel_password,
                        "");
    url = parse("redis+sentinel://:pw@one/main/3?sentinel=watch:a%2Fb%3F");
    assert_string_equal(url.sentinel_user, "watch");
    assert_string_equal(url.sentinel_password, "a/b?");
    assert_string_equal(url.password, "pw");
    assert_int_equal(url.db, 3);
}

static void
a_cluster_has_some_nodes_and_no_database(void **state)
{
    struct shield_url url = parse("redis+cluster://u:pw@one:7000,two");

    (void)state;
    assert_int_equal(url.kind, SHIELD_CLUSTER);
    assert_int_equal(url.n_hosts, 2);
    assert_string_equal(url.hosts[1].host, "two");
    assert_string_equal(url.hosts[1].port, "6379");
    assert_string_equal(url.user, "u");
}

/* The known values of the cluster's specification. */
static void
a_key_has_its_slot(void **state)
{
    (void)state;
    assert_int_equal(shield_slot_of(idem_bytes_of("123456789")), 12739);
    assert_int_equal(shield_slot_of(idem_bytes_of("foo")), 12182);
    assert_int_equal(shield_slot_of(idem_bytes_of("{foo}.bar")), 12182);
    assert_int_equal(shield_slot_of(idem_bytes_of("x{foo}{bar}")), 12182);
    assert_int_not_equal(shield_slot_of(idem_bytes_of("{}foo")), 12182);
    assert_int_not_equal(shield_slot_of(idem_bytes_of("{foo")), 12182);
}

struct ranges {
    unsigned count, slots;
    struct shield_place last;
};

static void
note_range(void *with, const struct shield_place *place, unsigned first,
           unsigned last)
{
    struct ranges *ranges = with;

    ranges->count++;
    ranges->slots += last - first + 1;
    ranges->last = *place;
}

static void
a_clusters_nodes_are_read(void **state)
{
    const char *text =
        "aa 127.0.0.1:7001@17001,host master - 0 1 2 connected 0-99 150\r\n"
        "bb :7002@17002 myself,master - 0 1 1 connected 200-299 [93-<-aa]\r\n"
        "cc 127.0.0.1:7003@17003 slave aa 0 1 1 connected\r\n"
        "dd 127.0.0.1:7004@17004 master,fail - 0 1 1 connected 300-399\r\n"
        "ee 127.0.0.1:x@1 master - 0 1 1 connected 400-499\r\n"
        "ff fe80::1:7005@17005 master - 0 1 1 connected 500-x 20000 600\r\n"
        "nonsense";
    struct ranges ranges = {0, 0, {.host = ""}};

    (void)state;
    shield_read_cluster(idem_bytes_of(text), "here", note_range, &ranges);
    assert_int_equal(ranges.count, 4);
    assert_int_equal(ranges.slots, 100 + 1 + 100 + 1);
    assert_string_equal(ranges.last.host, "fe80::1");
    assert_string_equal(ranges.last.port, "7005");
}

static void
a_sentinels_master_and_a_redirection_are_read(void **state)
{
    const char *text =
        "# Sentinel\r\nsentinel_masters:2\r\n"
        "master0:name=a,status=ok,address=10.0.0.1:1,slaves=1\r\n"
        "master1:name=ab,status=ok,address=10.0.0.2:2\r\n";
    struct shield_place place;
    struct shield_redirect to;

    (void)state;
    assert_true(shield_read_master(&place, idem_bytes_of(text), "ab"));
    assert_string_equal(place.host, "10.0.0.2");
    assert_string_equal(place.port, "2");
    assert_false(shield_read_master(&place, idem_bytes_of(text), "b"));
    assert_true(shield_read_redirect(&to, idem_bytes_of("MOVED 7 h:1"), ""));
    assert_false(to.asking);
    assert_true(shield_read_redirect(&to, idem_bytes_of("ASK 7 :2"), "here"));
    assert_true(to.asking);
    assert_string_equal(to.place.host, "here");
    for (int i = 0; i < 4; i++) {
        const char *bad[] = {"ERR no", "MOVED", "MOVED 7", "MOVED 99999 h:1"};

        assert_false(shield_read_redirect(&to, idem_bytes_of(bad[i]), "here"));
    }
}

static void
what_is_no_url_is_refused(void **state)
{
    const char *texts[] = {
        "",
        "127.0.0.1:6379",
        "http://cache",
        "redis://",
        "redis://:6379",
        "redis://cache:",
        "redis://cache:0",
        "redis://cache:65536",
        "redis://cache:12x",
        "redis://cache/x",
        "redis://cache/-1",
        "redis://cache/99999",
        "redis://[::1",
        "redis://[::1]x",
        "redis://password@cache",
        "redis://:%4@cache",
        "redis://:%00@cache",
        "unix://run/redis.sock",
        "unix:///run/redis.sock?x=1",
        "unix:///run/redis.sock?db=",
        "redis://one,two",
        "redis+sentinel://one",
        "redis+sentinel://one/",
        "redis+sentinel://one/main/x",
        "redis+sentinel://one,/main",
        "redis+sentinel://one/main?sentinel=pw",
        "redis+sentinel://one/main?other=:pw",
        "redis+cluster://one?sentinel=:pw",
        "redis+cluster://",
        "redis+cluster://one/3",
        "redis+cluster://1,2,3,4,5,6,7,8,9",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct shield_url url;

        if (shield_url_parse(&url, texts[i], NULL) != IDEM_INVALID_ARGUMENT)
            fail_msg("\"%s\" was taken", texts[i]);
    }
}

static void
what_is_too_long_is_refused(void **state)
{
    char text[2000] = "redis://:";
    struct shield_url url;

    (void)state;
    memset(text + 9, 'p', 600);
    strcpy(text + 609, "@cache");
    assert_int_equal(shield_url_parse(&url, text, NULL), IDEM_INVALID_ARGUMENT);
    memset(text, 'h', 600);
    memcpy(text, "redis://", 8);
    assert_int_equal(shield_url_parse(&url, text, NULL), IDEM_INVALID_ARGUMENT);
    memcpy(text, "unix:///", 8);
    assert_int_equal(shield_url_parse(&url, text, NULL), IDEM_INVALID_ARGUMENT);
}

static void
an_error_does_not_show_the_password(void **state)
{
    struct shield_url url;
    struct idem_error err;

    (void)state;
    assert_int_equal(
        shield_url_parse(&url, "redis://:hunter2@cache:99999", &err),
        IDEM_INVALID_ARGUMENT);
    assert_null(strstr(err.message, "hunter2"));
}

static void
a_breaker_opens_after_failures_in_a_row(void **state)
{
    struct shield_breaker breaker = {.limit = 3, .open_ns = 1000 * MS};

    (void)state;
    shield_breaker_failed(&breaker, 0);
    shield_breaker_failed(&breaker, 0);
    assert_true(shield_breaker_allows(&breaker, 1));
    shield_breaker_succeeded(&breaker);
    shield_breaker_failed(&breaker, 0);
    shield_breaker_failed(&breaker, 0);
    assert_true(shield_breaker_allows(&breaker, 1));
    shield_breaker_failed(&breaker, 0);
    assert_false(shield_breaker_allows(&breaker, 1));
    assert_false(shield_breaker_allows(&breaker, 999 * MS));
}

static void
an_open_breaker_lets_one_trial_through_at_a_time(void **state)
{
    struct shield_breaker breaker = {.limit = 1, .open_ns = 1000 * MS};

    (void)state;
    shield_breaker_failed(&breaker, 0);
    assert_true(shield_breaker_allows(&breaker, 1000 * MS));
    assert_false(shield_breaker_allows(&breaker, 1000 * MS));
    shield_breaker_failed(&breaker, 1005 * MS);
    assert_false(shield_breaker_allows(&breaker, 2000 * MS));
    assert_true(shield_breaker_allows(&breaker, 2005 * MS));
    shield_breaker_succeeded(&breaker);
    assert_true(shield_breaker_allows(&breaker, 2005 * MS));
    assert_true(shield_breaker_allows(&breaker, 2005 * MS));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_says_where_and_how),
        cmocka_unit_test(a_password_may_have_any_byte),
        cmocka_unit_test(a_unix_socket_has_a_path),
        cmocka_unit_test(sentinels_are_several_and_name_a_master),
        cmocka_unit_test(a_cluster_has_some_nodes_and_no_database),
        cmocka_unit_test(a_key_has_its_slot),
        cmocka_unit_test(a_clusters_nodes_are_read),
        cmocka_unit_test(a_sentinels_master_and_a_redirection_are_read),
        cmocka_unit_test(what_is_no_url_is_refused),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(an_error_does_not_show_the_password),
        cmocka_unit_test(a_breaker_opens_after_failures_in_a_row),
        cmocka_unit_test(an_open_breaker_lets_one_trial_through_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
