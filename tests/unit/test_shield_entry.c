#include "support.h"

#include "shield_entry.h"

#include <stdlib.h>
#include <string.h>

#define SECRET(text)                                                           \
    {                                                                          \
        (const uint8_t *)(text), sizeof(text) - 1                              \
    }

static const struct shield_secrets ours = {{{7, SECRET("0123456789abcdef")}},
                                           1};

static struct shield_entry
make_entry(void)
{
    struct shield_entry entry = {
        .fingerprint = {.version = IDEM_FINGERPRINT_VERSION},
        .answer = {.status = IDEM_NOT_FOUND,
                   .message = idem_bytes_of("no account alice"),
                   .reason = idem_bytes_of("NO_ACCOUNT"),
                   .reply = {NULL, 0},
                   .trailers = idem_bytes_of("trailers"),
                   .first_at_ms = 1700000000123,
                   .executions = 258},
    };

    memset(entry.epoch, 1, sizeof(entry.epoch));
    memset(entry.digest, 2, sizeof(entry.digest));
    memset(entry.fingerprint.raw, 3, 32);
    memset(entry.fingerprint.canonical, 4, 32);
    return entry;
}

/* Exactly as many bytes, so that a read past them is seen. */
static struct idem_bytes
write_entry(const struct shield_entry *entry)
{
    size_t size = shield_entry_size(entry);
    uint8_t *bytes = malloc(size);

    assert_non_null(bytes);
    shield_entry_write(entry, &ours, bytes);
    return (struct idem_bytes){bytes, size};
}

static void
drop(struct idem_bytes bytes)
{
    free((void *)(uintptr_t)bytes.data);
}

static void
what_is_written_is_read(void **state)
{
    struct shield_entry wrote = make_entry(), read;
    struct idem_bytes bytes = write_entry(&wrote);

    (void)state;
    assert_int_equal(shield_entry_read(&read, &ours, bytes), SHIELD_READ_GOOD);
    assert_memory_equal(read.epoch, wrote.epoch, 32);
    assert_memory_equal(read.digest, wrote.digest, 32);
    assert_memory_equal(read.fingerprint.raw, wrote.fingerprint.raw, 32);
    assert_memory_equal(read.fingerprint.canonical, wrote.fingerprint.canonical,
                        32);
    assert_int_equal(read.fingerprint.version, wrote.fingerprint.version);
    assert_int_equal(read.answer.status, wrote.answer.status);
    assert_true(idem_bytes_equal(read.answer.message, wrote.answer.message));
    assert_true(idem_bytes_equal(read.answer.reason, wrote.answer.reason));
    assert_true(idem_bytes_equal(read.answer.reply, wrote.answer.reply));
    assert_true(idem_bytes_equal(read.answer.trailers, wrote.answer.trailers));
    assert_int_equal(read.answer.first_at_ms, wrote.answer.first_at_ms);
    assert_int_equal(read.answer.executions, wrote.answer.executions);
    drop(bytes);
}

static void
one_flipped_bit_is_not_an_entry(void **state)
{
    struct shield_entry wrote = make_entry(), read;
    struct idem_bytes bytes = write_entry(&wrote);
    uint8_t *at = (uint8_t *)(uintptr_t)bytes.data;

    (void)state;
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(shield_entry_read(&read, &ours, bytes),
                             SHIELD_READ_GOOD);
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    drop(bytes);
}

static void
a_cut_or_longer_one_is_not_an_entry(void **state)
{
    struct shield_entry wrote = make_entry(), read;
    struct idem_bytes bytes = write_entry(&wrote);

    (void)state;
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *cut = malloc(size + 1);

        memcpy(cut, bytes.data, size);
        assert_int_equal(
            shield_entry_read(&read, &ours, (struct idem_bytes){cut, size}),
            SHIELD_READ_BROKEN);
        free(cut);
    }
    drop(bytes);
}

static void
another_secret_signs_other_entries(void **state)
{
    const struct shield_secrets others = {{{7, SECRET("0123456789abcdeF")}}, 1};
    struct shield_entry wrote = make_entry(), read;
    struct idem_bytes bytes = write_entry(&wrote);

    (void)state;
    assert_int_equal(shield_entry_read(&read, &others, bytes),
                     SHIELD_READ_BROKEN);
    drop(bytes);
}

/* The secret is being changed: the old one is still believed. */
static void
an_entry_names_the_secret_that_signed_it(void **state)
{
    const struct shield_secrets changed = {
        {{8, SECRET("the new one of 16")}, {7, SECRET("0123456789abcdef")}}, 2};
    const struct shield_secrets without = {{{8, SECRET("the new one of 16")}},
                                           1};
    struct shield_entry wrote = make_entry(), read;
    struct idem_bytes bytes = write_entry(&wrote);

    (void)state;
    assert_int_equal(shield_entry_read(&read, &changed, bytes),
                     SHIELD_READ_GOOD);
    assert_int_equal(shield_entry_read(&read, &without, bytes),
                     SHIELD_READ_FOREIGN);
    shield_entry_write(&wrote, &changed, (uint8_t *)(uintptr_t)bytes.data);
    assert_int_equal(shield_entry_read(&read, &ours, bytes),
                     SHIELD_READ_FOREIGN);
    assert_int_equal(shield_entry_read(&read, &without, bytes),
                     SHIELD_READ_GOOD);
    drop(bytes);
}

/* Signed, and still not what this version writes: parts that lie about their
 * size do not make it read past the end. */
static void
signed_nonsense_is_not_an_entry(void **state)
{
    (void)state;
    for (size_t size = 22; size < 260; size++) {
        uint8_t *bytes = malloc(size), tag[IDEM_SHA256_SIZE];
        struct shield_entry read;

        memset(bytes, size % 3 ? 0xFF : 0, size);
        memcpy(bytes, "\2\7\0\0\0", 5);
        idem_hmac_sha256(ours.list[0].bytes,
                         (struct idem_bytes){bytes, size - 16}, tag);
        memcpy(bytes + size - 16, tag, 16);
        if (shield_entry_read(&read, &ours, (struct idem_bytes){bytes, size}) ==
            SHIELD_READ_GOOD)
            assert_int_equal(size, 178); /* all empty is one */
        free(bytes);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(one_flipped_bit_is_not_an_entry),
        cmocka_unit_test(a_cut_or_longer_one_is_not_an_entry),
        cmocka_unit_test(another_secret_signs_other_entries),
        cmocka_unit_test(an_entry_names_the_secret_that_signed_it),
        cmocka_unit_test(signed_nonsense_is_not_an_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
