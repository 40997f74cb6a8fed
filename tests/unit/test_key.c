#include "support.h"

#include "context.h"
#include "fake_clock.h"

#include <idem/key.h>
#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)

static struct fake_clock fake;

static int
set_up(void **state)
{
    (void)state;
    fake_clock_init(&fake);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    fake_clock_fini(&fake);
    return 0;
}

/* The reason for which the text is no key; "" when it is one. */
static const char *
reason_of(const void *text, size_t size)
{
    static struct idem_error err;
    struct idem_key key;

    err.reason[0] = 0;
    if (idem_key_parse(&key, (struct idem_bytes){text, size}, &err) != IDEM_OK)
        assert_int_equal(err.status, IDEM_INVALID_ARGUMENT);
    return err.reason;
}

static const char *
reason_of_text(const char *text)
{
    return reason_of(text, strlen(text));
}

static void
a_minted_key_says_when_it_was_made_and_how_long_it_counts(void **state)
{
    char text[IDEM_KEY_MAX + 1];
    struct idem_key key;

    (void)state;
    idem_key_mint(text, &fake.clock, DAY_MS);
    assert_int_equal(idem_key_parse(&key, idem_bytes_of(text), NULL), IDEM_OK);
    assert_true(key.minted);
    assert_int_equal(key.minted_ms, fake.clock.wall_ms(&fake.clock));
    assert_int_equal(key.window_ms, DAY_MS);
    assert_true(idem_bytes_equal(key.text, idem_bytes_of(text)));
}

static void
a_window_is_rounded_up_to_seconds_and_bounded(void **state)
{
    const int64_t asked_and_got[][2] = {{1, 1000},
                                        {1500, 2000},
                                        {0, DAY_MS},
                                        {-5, DAY_MS},
                                        {INT64_MAX, 400 * DAY_MS}};
    char text[IDEM_KEY_MAX + 1];
    struct idem_key key;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        idem_key_mint(text, &fake.clock, asked_and_got[i][0]);
        assert_int_equal(idem_key_parse(&key, idem_bytes_of(text), NULL),
                         IDEM_OK);
        assert_int_equal(key.window_ms, asked_and_got[i][1]);
    }
}

static void
no_two_minted_keys_are_alike(void **state)
{
    char keys[100][IDEM_KEY_MAX + 1];

    (void)state;
    for (size_t i = 0; i < 100; i++) {
        idem_key_mint(keys[i], &fake.clock, DAY_MS);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(keys[i], keys[j]);
    }
}

static void
an_opaque_key_is_any_visible_text(void **state)
{
    const char *texts[] = {"a",  "order-17",  "!~",  "';droptable",
                           "*3", "IDK_upper", "idk", "idf_x"};
    struct idem_key key;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(idem_key_parse(&key, idem_bytes_of(texts[i]), NULL),
                         IDEM_OK);
        assert_false(key.minted);
        assert_int_equal(key.minted_ms, 0);
        assert_int_equal(key.window_ms, 0);
    }
}

/* Fault 61. */
static void
each_broken_key_has_its_reason(void **state)
{
    char longest[IDEM_KEY_MAX + 1];

    (void)state;
    memset(longest, 'k', sizeof(longest));
    assert_string_equal(reason_of(longest, IDEM_KEY_MAX), "");
    assert_string_equal(reason_of(longest, IDEM_KEY_MAX + 1),
                        IDEM_KEY_TOO_LONG);
    assert_string_equal(reason_of("", 0), IDEM_KEY_EMPTY);
    assert_string_equal(reason_of(NULL, 0), IDEM_KEY_EMPTY);
    assert_string_equal(reason_of("a\0b", 3), IDEM_KEY_CHARSET);
    assert_string_equal(reason_of_text("a\r\nb"), IDEM_KEY_CHARSET);
    assert_string_equal(reason_of_text("schl\xC3\xBCssel"), IDEM_KEY_CHARSET);
    assert_string_equal(reason_of_text("'; drop table"), IDEM_KEY_CHARSET);
    assert_string_equal(reason_of_text("*1\r\n$8\r\nFLUSHALL\r\n"),
                        IDEM_KEY_CHARSET);
    assert_string_equal(reason_of_text("idk_"), IDEM_KEY_FORMAT);
    assert_string_equal(reason_of_text("idk_0123"), IDEM_KEY_FORMAT);
}

static void
a_minted_key_with_one_byte_changed_is_refused(void **state)
{
    char text[IDEM_KEY_MAX + 1];

    (void)state;
    idem_key_mint(text, &fake.clock, DAY_MS);
    for (size_t i = 4; text[i]; i++) {
        char before = text[i];

        text[i] = before == '7' ? '8' : '7';
        assert_string_equal(reason_of_text(text), IDEM_KEY_FORMAT);
        text[i] = before;
    }
}

/* With the checksum of what is there, so that the digits alone decide; some of
 * them say that it is a UUID of version 7. */
static void
a_minted_key_has_sixteen_digits(void **state)
{
    char text[IDEM_KEY_MAX + 1];

    (void)state;
    idem_key_mint(text, &fake.clock, DAY_MS);
    for (size_t i = 4; i < 4 + 32; i++)
        for (int c = 1; c < 256; c++) {
            char *checksum = strrchr(text, '_'), before = text[i];
            const char *allowed = i == 4 + 12   ? "7"
                                  : i == 4 + 16 ? "89ab"
                                                : "0123456789abcdef";

            text[i] = (char)c;
            checksum[1] = '\0';
            idem_key_add_checksum(text);
            if (strchr(allowed, c))
                assert_string_equal(reason_of_text(text), "");
            else
                assert_string_not_equal(reason_of_text(text), "");
            text[i] = before;
        }
}

static void
a_minted_key_that_is_cut_or_longer_is_refused(void **state)
{
    char text[IDEM_KEY_MAX + 1];
    size_t size;

    (void)state;
    idem_key_mint(text, &fake.clock, DAY_MS);
    size = strlen(text);
    for (size_t cut = 4; cut < size; cut++)
        assert_string_equal(reason_of(text, cut), IDEM_KEY_FORMAT);
    text[size] = '0';
    assert_string_equal(reason_of(text, size + 1), IDEM_KEY_FORMAT);
}

static void
a_minted_key_has_one_spelling(void **state)
{
    char text[IDEM_KEY_MAX + 1], *digit;

    (void)state;
    idem_key_mint(text, &fake.clock, DAY_MS);
    digit = strpbrk(text + 4, "abcdef");
    assert_non_null(digit);
    *digit = (char)(*digit - 'a' + 'A');
    assert_string_equal(reason_of_text(text), IDEM_KEY_FORMAT);
}

static void
the_child_of_a_minted_key_has_its_time_and_window(void **state)
{
    char parent[IDEM_KEY_MAX + 1], child[IDEM_KEY_MAX + 1];
    static const struct idem_method pay = {.scope = "bank.v1.Bank/Pay"};
    char again[IDEM_KEY_MAX + 1];
    struct idem_parent of = {.number = 1};
    struct idem_key key;

    (void)state;
    idem_key_mint(parent, &fake.clock, DAY_MS);
    of.key = idem_bytes_of(parent);
    idem_key_of_child(child, &of, &pay);
    assert_int_equal(idem_key_parse(&key, idem_bytes_of(child), NULL), IDEM_OK);
    assert_true(key.minted);
    assert_int_equal(key.minted_ms, fake.clock.wall_ms(&fake.clock));
    assert_int_equal(key.window_ms, DAY_MS);

    fake_clock_advance_ms(&fake, 5000);
    idem_key_of_child(again, &of, &pay);
    assert_string_equal(child, again);
    assert_string_not_equal(child, parent);
}

static void
a_childs_key_is_of_all_that_tells_calls_apart(void **state)
{
    static const struct idem_method pay = {.scope = "bank.v1.Bank/Pay"};
    static const struct idem_method refund = {.scope = "bank.v1.Bank/Refund"};
    const struct idem_parent first = {
        .tenant = idem_bytes_of("acme"),
        .scope = idem_bytes_of("shop.v1.Shop/Buy"),
        .key = idem_bytes_of("order-1"),
        .number = 1,
    };
    struct idem_parent others[5];
    char text[IDEM_KEY_MAX + 1], other[IDEM_KEY_MAX + 1];

    (void)state;
    idem_key_of_child(text, &first, &pay);
    idem_key_of_child(other, &first, &pay);
    assert_string_equal(text, other);
    idem_key_of_child(other, &first, &refund);
    assert_string_not_equal(text, other);
    for (int i = 0; i < 5; i++)
        others[i] = first;
    others[0].tenant = idem_bytes_of("evil");
    others[1].scope = idem_bytes_of("shop.v1.Shop/Sell");
    others[2].key = idem_bytes_of("order-2");
    others[3].number = 2;
    others[4].step = idem_bytes_of("1");
    for (int i = 0; i < 5; i++) {
        idem_key_of_child(other, &others[i], &pay);
        assert_string_not_equal(text, other);
    }
}

/* What a handler hands to a system that is none of ours. */
static void
a_steps_key_is_of_all_that_tells_calls_apart(void **state)
{
    static const struct idem_method buy = {.scope = "shop.v1.Shop/Buy"};
    static const struct idem_method sell = {.scope = "shop.v1.Shop/Sell"};
    const struct idem_call first = {.method = &buy,
                                    .tenant = idem_bytes_of("acme"),
                                    .key = idem_bytes_of("order-1")};
    struct idem_call others[3] = {first, first, first}, same = first;
    char text[IDEM_KEY_MAX + 1], other[IDEM_KEY_MAX + 1];
    struct idem_context context;

    (void)state;
    others[0].tenant = idem_bytes_of("evil");
    others[1].method = &sell;
    others[2].key = idem_bytes_of("order-2");
    context_init(&context, &same, NULL);
    assert_int_equal(idem_key_of_step(text, &context, "pay", NULL), IDEM_OK);
    assert_int_equal(idem_key_of_step(other, &context, "pay", NULL), IDEM_OK);
    assert_string_equal(text, other);
    assert_int_equal(idem_key_of_step(other, &context, "mail", NULL), IDEM_OK);
    assert_string_not_equal(text, other);
    for (int i = 0; i < 3; i++) {
        context_init(&context, &others[i], NULL);
        assert_int_equal(idem_key_of_step(other, &context, "pay", NULL),
                         IDEM_OK);
        assert_string_not_equal(text, other);
    }
}

static void
no_steps_key_follows_from_no_key(void **state)
{
    static const struct idem_method buy = {.scope = "shop.v1.Shop/Buy"};
    struct idem_call call = {.method = &buy};
    char text[IDEM_KEY_MAX + 1] = "untouched";
    struct idem_context context;
    struct idem_error err;

    (void)state;
    context_init(&context, &call, NULL);
    assert_int_equal(idem_key_of_step(text, &context, "pay", &err),
                     IDEM_FAILED_PRECONDITION);
    assert_string_equal(err.reason, IDEM_KEY_MISSING);
    assert_string_equal(text, "untouched");
}

static void
a_sessions_key_can_be_taken_apart(void **state)
{
    char session[IDEM_SESSION_MAX], again[IDEM_SESSION_MAX];
    char text[IDEM_KEY_MAX + 1];
    struct idem_key key;
    int64_t number;

    (void)state;
    idem_session_mint(session, &fake.clock, 0, DAY_MS);
    for (int64_t i = 1; i > 0 && i < INT64_MAX / 10; i = i * 10 + 7) {
        idem_key_of_session(text, session, i);
        assert_true(idem_session_split(idem_bytes_of(text), again, &number));
        assert_string_equal(again, session);
        assert_int_equal(number, i);
        assert_int_equal(idem_key_parse(&key, idem_bytes_of(text), NULL),
                         IDEM_OK);
        assert_int_equal(key.sequence, i);
    }
}

static void
what_is_no_sessions_key_is_not_taken_apart(void **state)
{
    static const char too_long[] =
        "ids_0190b6a5c0007000800000000000abcd0190b6a5c0007000800000000000abcd_"
        "60_1_00000000";
    static const char *const texts[] = {
        "",
        "ids_",
        "order-1",
        "idk_0190b6a5c0007000800000000000abcd_60_1_00000000",
        "ids_0190b6a5c0007000800000000000abcd_60_0_00000000",
        "ids_0190b6a5c0007000800000000000abcd_60__00000000",
        "ids_0190b6a5c0007000800000000000abcd_60_12x00000000",
        "ids_0190b6a5c0007000800000000000abcd_60_99999999999999999999_00000000",
        too_long,
        "ids_1_00000000",
    };
    char session[IDEM_SESSION_MAX];
    int64_t number = -1;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (idem_session_split(idem_bytes_of(texts[i]), session, &number))
            fail_msg("%s is taken for the key of a session", texts[i]);
    assert_int_equal(number, -1);
}

/* What a handler's child streams under: the same session in each of its runs.
 */
static void
a_minted_key_makes_a_session_of_its_time(void **state)
{
    char minted[IDEM_KEY_MAX + 1], first[IDEM_KEY_MAX + 1];
    char again[IDEM_KEY_MAX + 1], opaque[] = "order-1";
    struct idem_key of, key;

    (void)state;
    idem_key_mint(minted, &fake.clock, DAY_MS);
    strcpy(first, minted);
    strcpy(again, minted);
    assert_true(idem_key_to_session(first));
    assert_true(idem_key_to_session(again));
    assert_string_equal(first, again);
    assert_int_equal(idem_key_parse(&of, idem_bytes_of(minted), NULL), IDEM_OK);
    assert_int_equal(idem_key_parse(&key, idem_bytes_of(first), NULL), IDEM_OK);
    assert_int_equal(key.sequence, 1);
    assert_int_equal(key.minted_ms, of.minted_ms);
    assert_int_equal(key.window_ms, of.window_ms);
    assert_false(idem_key_to_session(first));
    assert_false(idem_key_to_session(opaque));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_minted_key_says_when_it_was_made_and_how_long_it_counts),
        cmocka_unit_test(a_window_is_rounded_up_to_seconds_and_bounded),
        cmocka_unit_test(no_two_minted_keys_are_alike),
        cmocka_unit_test(an_opaque_key_is_any_visible_text),
        cmocka_unit_test(each_broken_key_has_its_reason),
        cmocka_unit_test(a_minted_key_with_one_byte_changed_is_refused),
        cmocka_unit_test(a_minted_key_has_sixteen_digits),
        cmocka_unit_test(a_minted_key_that_is_cut_or_longer_is_refused),
        cmocka_unit_test(a_minted_key_has_one_spelling),
        cmocka_unit_test(the_child_of_a_minted_key_has_its_time_and_window),
        cmocka_unit_test(a_childs_key_is_of_all_that_tells_calls_apart),
        cmocka_unit_test(a_steps_key_is_of_all_that_tells_calls_apart),
        cmocka_unit_test(no_steps_key_follows_from_no_key),
        cmocka_unit_test(a_sessions_key_can_be_taken_apart),
        cmocka_unit_test(what_is_no_sessions_key_is_not_taken_apart),
        cmocka_unit_test(a_minted_key_makes_a_session_of_its_time),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
