#include "support.h"

#include "shield_breaker.h"
#include "shield_url.h"

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
    assert_string_equal(url.host, "127.0.0.1");
    assert_string_equal(url.port, "6380");
    assert_string_equal(url.path, "");
    assert_string_equal(url.password, "");
    assert_int_equal(url.db, 3);

    url = parse("redis://cache");
    assert_string_equal(url.host, "cache");
    assert_string_equal(url.port, "6379");
    assert_int_equal(parse("redis://cache/").db, 0);

    url = parse("redis://[::1]:7000/15");
    assert_string_equal(url.host, "::1");
    assert_string_equal(url.port, "7000");
    assert_string_equal(parse("redis://[::1]").host, "::1");
}

static void
a_password_may_have_any_byte(void **state)
{
    struct shield_url url = parse("redis://:p%40ss%2Fw%25rd@cache:1/2");

    (void)state;
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "p@ss/w%rd");
    assert_string_equal(url.host, "cache");

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
    assert_string_equal(url.host, "");
    url = parse("unix://:secret@/run/redis.sock?db=4");
    assert_string_equal(url.path, "/run/redis.sock");
    assert_string_equal(url.password, "secret");
    assert_int_equal(url.db, 4);
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
        cmocka_unit_test(what_is_no_url_is_refused),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(an_error_does_not_show_the_password),
        cmocka_unit_test(a_breaker_opens_after_failures_in_a_row),
        cmocka_unit_test(an_open_breaker_lets_one_trial_through_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
