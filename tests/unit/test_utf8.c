#include "support.h"

#include "utf8.h"

#include <string.h>

static bool
valid(const char *text)
{
    return utf8_valid(idem_bytes_of(text));
}

static void
characters_of_every_length_are_valid(void **state)
{
    (void)state;
    assert_true(valid(""));
    assert_true(valid("plain text that is longer than eight bytes"));
    assert_true(valid("\xC2\x80\xDF\xBF"));
    assert_true(valid("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"));
    assert_true(valid("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"));
    assert_true(utf8_valid((struct idem_bytes){(const uint8_t *)"a\0b", 3}));
}

static void
overlong_forms_surrogates_and_what_is_over_the_end_are_not(void **state)
{
    static const char *const wrong[] = {
        "\x80",             /* a byte of the middle */
        "\xC0\x80",         /* overlong NUL */
        "\xC1\xBF",         /* overlong DEL */
        "\xE0\x9F\xBF",     /* overlong of two */
        "\xF0\x8F\xBF\xBF", /* overlong of three */
        "\xED\xA0\x80",     /* first surrogate */
        "\xED\xBF\xBF",     /* last surrogate */
        "\xF4\x90\x80\x80", /* U+110000 */
        "\xF8\x88\x80\x80\x80",
        "\xFE",
        "\xFF",
        "\xC3",         /* cut */
        "\xE2\x82",     /* cut */
        "\xF0\x9F\x92", /* cut */
        "\xC3(",
        "12345678\xC3",
        "1234567\3039",
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(valid(wrong[i]));
}

/* rpc case 85 */
static void
repair_keeps_what_is_text(void **state)
{
    char text[] = "caf\xC3\xA9 \xFF\xC0\x80 end \xE2\x82";

    (void)state;
    utf8_repair(text);
    assert_string_equal(text, "caf\xC3\xA9 ??? end ??");
    assert_true(valid(text));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_of_every_length_are_valid),
        cmocka_unit_test(
            overlong_forms_surrogates_and_what_is_over_the_end_are_not),
        cmocka_unit_test(repair_keeps_what_is_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
