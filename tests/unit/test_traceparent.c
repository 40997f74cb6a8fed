#include "support.h"

#include "traceparent.h"

#include <string.h>

/* W3C Trace Context, 3.2. */

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"

static bool
is(const char *text)
{
    return traceparent_is(idem_bytes_of(text));
}

static void
what_the_standard_shows_is_one(void **state)
{
    (void)state;
    assert_true(is("00-" TRACE "-" SPAN "-01"));
    assert_true(is("00-" TRACE "-" SPAN "-00"));
}

static void
a_later_version_may_say_more(void **state)
{
    (void)state;
    assert_true(is("cc-" TRACE "-" SPAN "-01"));
    assert_true(is("cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like"));
    assert_false(is("cc-" TRACE "-" SPAN "-01.what"));
    assert_false(is("00-" TRACE "-" SPAN "-01-what"));
}

static void
what_breaks_a_rule_is_none(void **state)
{
    (void)state;
    assert_false(is(""));
    assert_false(is("ff-" TRACE "-" SPAN "-01"));
    assert_false(is("0-" TRACE "-" SPAN "-01"));
    assert_false(is("00-00000000000000000000000000000000-" SPAN "-01"));
    assert_false(is("00-" TRACE "-0000000000000000-01"));
    assert_false(is("00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01"));
    assert_false(is("00-" TRACE "-" SPAN "-0g"));
    assert_false(is("00-" TRACE "_" SPAN "-01"));
}

static void
every_cut_of_one_is_none(void **state)
{
    struct idem_bytes text = idem_bytes_of("00-" TRACE "-" SPAN "-01");

    (void)state;
    while (text.size > 0) {
        text.size--;
        assert_false(traceparent_is(text));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_standard_shows_is_one),
        cmocka_unit_test(a_later_version_may_say_more),
        cmocka_unit_test(what_breaks_a_rule_is_none),
        cmocka_unit_test(every_cut_of_one_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
