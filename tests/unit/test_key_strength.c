/* How hard a key is to guess (semantics.md 3.11; docs/wire.md, 10). */
#include "support.h"

#include "fake_clock.h"

#include <idem/key.h>
#include <idem/reason.h>

#include <stdio.h>

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

static unsigned
bits_of(const char *text)
{
    return idem_key_bits(idem_bytes_of(text));
}

/* Those of docs/wire.md's table, and what stands on either side of a border. */
static void
what_can_be_guessed_has_few_bits(void **state)
{
    static const struct {
        unsigned bits;
        const char *text;
    } keys[] = {
        {130, "9f86d081884c7d659a2feaa0c55ad015"},
        {130, "9f86d081-884c-7d65-9a2f-eaa0c55ad015"},
        {130, "9F86D081-884C-7D65-9A2F-EAA0C55AD015"},
        {64, "9f86d081884c7d65"},
        {60, "9f86d081884c7d6"},
        {100, "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
        {61, "2026091722001401234567890123"},
        {38, "order-20260917-000123"},
        {34, "ORD20260917000123"},
        {59, "fee-20260917-000123"},
        {38, "2026-09-17T10:00:00Z"},
        {56, "correct-horse-battery-staple"},
        {12, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {12, "00000000-0000-0000-0000-000000000000"},
        {64, "1234567890123456789012345678901"},
        {63, "123456789012345678901234567890"},
        {12, "Aa"},
        {0, "-./:"},
        {0, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (bits_of(keys[i].text) != keys[i].bits)
            fail_msg("%s has %u bits, not %u", keys[i].text,
                     bits_of(keys[i].text), keys[i].bits);
}

static void
make_uuid4(char *text)
{
    uint8_t bytes[16];

    fake.clock.random(&fake.clock, bytes, sizeof bytes);
    bytes[6] = (uint8_t)(0x40 | (bytes[6] & 0x0F));
    bytes[8] = (uint8_t)(0x80 | (bytes[8] & 0x3F));
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *text++ = '-';
        text += sprintf(text, "%02x", bytes[i]);
    }
}

static void
random_uuids_are_hard_to_guess(void **state)
{
    char text[40];

    (void)state;
    for (int i = 0; i < 100000; i++) {
        make_uuid4(text);
        if (bits_of(text) < 64)
            fail_msg("%s has %u bits", text, bits_of(text));
    }
}

static void
a_key_that_goes_on_is_never_weaker(void **state)
{
    struct idem_bytes text;
    uint8_t bytes[60];
    unsigned before;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        fake.clock.random(&fake.clock, bytes, sizeof bytes);
        for (size_t j = 0; j < sizeof bytes; j++)
            bytes[j] = (uint8_t)(0x21 + bytes[j] % (j < 30 ? 0x5E : 0x19));
        before = 0;
        for (size_t size = 1; size <= sizeof bytes; size++) {
            text = (struct idem_bytes){bytes, size};
            assert_true(idem_key_bits(text) >= before);
            before = idem_key_bits(text);
        }
    }
}

static enum idem_status
admit(const char *text, bool secret, struct idem_error *err)
{
    const struct idem_method method = {.name = "bank.v1.Bank/Pay",
                                       .secret_keys = secret};
    struct idem_key key;

    return idem_key_admit(&key, &method, idem_bytes_of(text), err);
}

/* Rule: semantics.md 3.11. */
static void
only_a_method_with_secret_keys_refuses_a_weak_one(void **state)
{
    char minted[IDEM_KEY_MAX + 1], session[IDEM_SESSION_MAX];
    struct idem_error err;

    (void)state;
    assert_int_equal(admit("order-17", false, NULL), IDEM_OK);
    assert_int_equal(admit("order-17", true, &err), IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.reason, IDEM_KEY_WEAK);
    assert_int_equal(admit("9f86d081884c7d65", true, NULL), IDEM_OK);
    assert_int_equal(admit("a b", true, &err), IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.reason, IDEM_KEY_CHARSET);
    idem_key_mint(minted, &fake.clock, DAY_MS);
    assert_int_equal(admit(minted, true, NULL), IDEM_OK);
    idem_session_mint(session, &fake.clock, 0, DAY_MS);
    idem_key_of_session(minted, session, 1);
    assert_int_equal(admit(minted, true, NULL), IDEM_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_be_guessed_has_few_bits),
        cmocka_unit_test(random_uuids_are_hard_to_guess),
        cmocka_unit_test(a_key_that_goes_on_is_never_weaker),
        cmocka_unit_test(only_a_method_with_secret_keys_refuses_a_weak_one),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
