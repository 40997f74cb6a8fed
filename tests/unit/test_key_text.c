#include "support.h"

#include "key_text.h"

#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

static enum idem_status
check(const char *text, size_t size, struct idem_error *err)
{
    *err = (struct idem_error){.status = IDEM_OK};
    return key_text_check((struct idem_bytes){(const uint8_t *)text, size},
                          err);
}

/* Each byte at each place of a text of each size up to three words. */
static void
each_byte_of_a_key_is_of_0x21_to_0x7e_wherever_it_stands(void **state)
{
    struct idem_error err;
    char text[24], said[64];

    (void)state;
    memset(text, 'k', sizeof(text));
    for (size_t size = 1; size <= sizeof(text); size++)
        for (size_t at = 0; at < size; at++)
            for (int byte = 0; byte < 256; byte++) {
                bool fine = byte >= 0x21 && byte <= 0x7E;

                text[at] = (char)byte;
                assert_int_equal(check(text, size, &err),
                                 fine ? IDEM_OK : IDEM_INVALID_ARGUMENT);
                text[at] = 'k';
                if (fine)
                    continue;
                snprintf(said, sizeof(said), "byte %zu of the key", at);
                assert_string_equal(err.reason, IDEM_KEY_CHARSET);
                assert_non_null(strstr(err.message, said));
            }
}

/* A carry of one that is wrong must not hide another. */
static void
the_first_of_many_wrong_bytes_is_named(void **state)
{
    struct idem_error err;

    (void)state;
    assert_int_equal(check("abc\xFF\x20\x7F\x80xyz", 10, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "byte 3 "));
}

static void
a_key_may_be_absent_and_has_at_most_255_bytes(void **state)
{
    struct idem_error err;
    char text[IDEM_KEY_MAX + 1];

    (void)state;
    memset(text, '~', sizeof(text));
    assert_int_equal(check(NULL, 0, &err), IDEM_OK);
    assert_int_equal(check(text, IDEM_KEY_MAX, &err), IDEM_OK);
    assert_int_equal(check(text, IDEM_KEY_MAX + 1, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.reason, IDEM_KEY_TOO_LONG);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            each_byte_of_a_key_is_of_0x21_to_0x7e_wherever_it_stands),
        cmocka_unit_test(the_first_of_many_wrong_bytes_is_named),
        cmocka_unit_test(a_key_may_be_absent_and_has_at_most_255_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
