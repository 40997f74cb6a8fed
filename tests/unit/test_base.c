#include "support.h"

#include "crc32c.h"
#include "fake_clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <idem/digest.h>
#include <idem/status.h>

static void
a_failure_is_written_once_and_its_status_handed_back(void **state)
{
    struct idem_error err = {.message = "before"};

    (void)state;
    assert_int_equal(
        idem_fail_reason(&err, IDEM_ABORTED, "KEY_RUNNING", "key %s runs", "k"),
        IDEM_ABORTED);
    assert_int_equal(err.status, IDEM_ABORTED);
    assert_string_equal(err.reason, "KEY_RUNNING");
    assert_string_equal(err.message, "key k runs");
    assert_int_equal(idem_fail(&err, IDEM_INTERNAL, "again: %s", err.message),
                     IDEM_INTERNAL);
    assert_string_equal(err.reason, "");
    assert_string_equal(err.message, "again: key k runs");
    assert_int_equal(idem_fail(NULL, IDEM_UNKNOWN, "nobody hears"),
                     IDEM_UNKNOWN);
    idem_fail(&err, IDEM_UNKNOWN, "%0400d", 7);
    assert_int_equal(strlen(err.message), IDEM_MESSAGE_MAX - 1);
}

static void
codes_and_effects_have_names(void **state)
{
    enum idem_status status;

    (void)state;
    assert_string_equal(idem_status_name(IDEM_OK), "OK");
    assert_string_equal(idem_status_name(IDEM_UNAUTHENTICATED),
                        "UNAUTHENTICATED");
    assert_string_equal(idem_status_name((enum idem_status)17), "UNKNOWN");
    assert_string_equal(idem_status_name((enum idem_status) - 1), "UNKNOWN");
    for (int i = 0; i <= 16; i++) {
        assert_true(
            idem_status_parse(idem_status_name((enum idem_status)i), &status));
        assert_int_equal(status, i);
    }
    assert_true(idem_status_parse("data_loss", &status));
    assert_int_equal(status, IDEM_DATA_LOSS);
    assert_false(idem_status_parse("FINE", &status));
    assert_string_equal(idem_effect_name(IDEM_EFFECT_IN_DOUBT), "IN_DOUBT");
}

static void
assert_hex(const uint8_t *bytes, size_t size, const char *hex)
{
    char text[2 * IDEM_SHA256_SIZE + 1];

    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    assert_string_equal(text, hex);
}

/* FIPS 180-2, RFC 4231 test case 2, RFC 3720 B.4 */
static void
digests_are_those_of_the_standards(void **state)
{
    uint8_t hash[IDEM_SHA256_SIZE], parts[IDEM_SHA256_SIZE];
    struct idem_sha256 *sha = idem_sha256_new();
    uint8_t zeros[32] = {0}, secret[131];

    (void)state;
    idem_sha256_of(idem_bytes_of("abc"), hash);
    assert_hex(hash, sizeof(hash),
               "ba7816bf8f01cfea414140de5dae2223"
               "b00361a396177a9cb410ff61f20015ad");
    idem_sha256_add(sha, "a", 1);
    idem_sha256_add(sha, NULL, 0);
    idem_sha256_add(sha, "bc", 2);
    idem_sha256_finish(sha, parts);
    assert_true(idem_digest_equal(hash, parts, sizeof(hash)));
    parts[31] ^= 1;
    assert_false(idem_digest_equal(hash, parts, sizeof(hash)));
    idem_hmac_sha256(idem_bytes_of("Jefe"),
                     idem_bytes_of("what do ya want for nothing?"), hash);
    assert_hex(hash, sizeof(hash),
               "5bdcc146bf60754e6a042426089575c7"
               "5a003f089d2739839dec58b964ec3843");
    idem_hmac_sha256((struct idem_bytes){0}, (struct idem_bytes){0}, hash);
    assert_hex(hash, sizeof(hash),
               "b613679a0814d9ec772f95d778c35fc5"
               "ff1697c493715653c6c712144292c5ad");
    memset(secret, 0xaa, sizeof(secret)); /* RFC 4231, case 6 */
    idem_hmac_sha256((struct idem_bytes){secret, sizeof(secret)},
                     idem_bytes_of("Test Using Larger Than Block-Size Key - "
                                   "Hash Key First"),
                     hash);
    assert_hex(hash, sizeof(hash),
               "60e431591ee0b67f0d8a26aacbf5b77f"
               "8e0bc6213728c5140546040f0ee37f54");
    assert_int_equal(idem_crc32c(idem_bytes_of("123456789")), 0xE3069283);
    assert_int_equal(idem_crc32c((struct idem_bytes){zeros, 32}), 0x8A9136AA);
}

/* Sizes that are no whole words, and bytes that lie anywhere, both ways. */
static void
a_checksum_is_that_of_its_bits(void **state)
{
    bool instruction = crc32c_has_instruction();
    uint8_t bytes[24];

    (void)state;
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 57 + 11);
    for (size_t from = 0; from < 4; from++)
        for (size_t size = 0; from + size <= sizeof bytes; size++) {
            const struct idem_bytes part = {bytes + from, size};
            uint32_t crc = UINT32_MAX;

            for (size_t bit = 0; bit < 8 * size; bit++) {
                crc ^= bytes[from + bit / 8] >> bit % 8 & 1;
                crc = (crc >> 1) ^ (0x82F63B78 & (0 - (crc & 1)));
            }
            assert_int_equal(idem_crc32c(part), ~crc);
            assert_int_equal(crc32c_by_tables(part), ~crc);
            if (instruction)
                assert_int_equal(crc32c_by_instruction(part), ~crc);
        }
}

static void
parts_cannot_run_into_one_another(void **state)
{
    uint8_t one[IDEM_SHA256_SIZE], two[IDEM_SHA256_SIZE];
    struct idem_sha256 *sha = idem_sha256_new();

    (void)state;
    idem_sha256_add_part(sha, idem_bytes_of("ab"));
    idem_sha256_add_part(sha, idem_bytes_of("c"));
    idem_sha256_finish(sha, one);
    sha = idem_sha256_new();
    idem_sha256_add_part(sha, idem_bytes_of("a"));
    idem_sha256_add_part(sha, idem_bytes_of("bc"));
    idem_sha256_finish(sha, two);
    assert_false(idem_digest_equal(one, two, sizeof(one)));
}

/* Parts together are the same hash as one after another, however large. */
static void
parts_are_packed(void **state)
{
    static const size_t sizes[] = {0, 1, 17, 247, 248, 255, 256, 503, 504, 505};
    static const uint8_t bytes[505] = {1, 2, 3};
    const size_t n = sizeof(sizes) / sizeof(sizes[0]);

    (void)state;
    for (size_t i = 0; i < n * n * n; i++) {
        const struct idem_bytes parts[] = {{bytes, sizes[i % n]},
                                           {bytes, sizes[i / n % n]},
                                           {bytes, sizes[i / n / n]}};
        uint8_t together[IDEM_SHA256_SIZE], one[IDEM_SHA256_SIZE];
        struct idem_sha256 *sha = idem_sha256_new();

        for (size_t part = 0; part < 3; part++)
            idem_sha256_add_part(sha, parts[part]);
        idem_sha256_finish(sha, one);
        idem_sha256_of_parts(parts, 3, together);
        assert_memory_equal(together, one, sizeof(one));
    }
}

/* A part is its size and its bytes, however large, and hashes of one thread do
 * not mix. */
static void
a_part_is_its_size_and_its_bytes(void **state)
{
    static const uint8_t bytes[300] = {1, 2, 3};

    (void)state;
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        const uint8_t head[8] = {(uint8_t)size, (uint8_t)(size >> 8)};
        uint8_t part[IDEM_SHA256_SIZE], plain[IDEM_SHA256_SIZE];
        struct idem_sha256 *one = idem_sha256_new(), *two = idem_sha256_new();

        idem_sha256_add(two, head, sizeof(head));
        idem_sha256_add_part(one, (struct idem_bytes){bytes, size});
        idem_sha256_add(two, bytes, size);
        idem_sha256_finish(one, part);
        idem_sha256_finish(two, plain);
        assert_memory_equal(part, plain, sizeof(part));
    }
}

static void
a_number_between_is_between_and_reaches_both_ends(void **state)
{
    struct fake_clock fake;
    unsigned seen = 0;

    (void)state;
    fake_clock_init(&fake);
    for (unsigned i = 0; i < 1000; i++) {
        int64_t number = idem_clock_between(&fake.clock, -2, 3);

        assert_in_range(number + 2, 0, 5);
        seen |= 1u << (number + 2);
    }
    assert_int_equal(seen, 63);
    assert_int_equal(idem_clock_between(&fake.clock, 7, 7), 7);
    idem_clock_between(&fake.clock, INT64_MIN, INT64_MAX);
    assert_in_range(idem_clock_between(idem_clock_system(), 1, 6), 1, 6);
    fake_clock_fini(&fake);
}

static void
the_clock_of_the_system_wakes_at_its_time(void **state)
{
    const struct idem_clock *clock = idem_clock_system();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    int64_t until_ns = clock->monotonic_ns(clock) + 2000000;

    (void)state;
    pthread_mutex_lock(&mutex);
    while (clock->monotonic_ns(clock) < until_ns)
        clock->wait_until(clock, &condition, &mutex, until_ns);
    clock->wait_until(clock, &condition, &mutex, -1);
    pthread_mutex_unlock(&mutex);
    assert_true(clock->wall_ms(clock) > INT64_C(1700000000000));
}

/* A thread keeps bytes for later, and a child has what its parent had. */
static void
a_child_gets_other_random_bytes_than_its_parent(void **state)
{
    const struct idem_clock *clock = idem_clock_system();
    uint8_t before[16], mine[400], theirs[400];
    int pipe_fds[2];
    pid_t child;

    (void)state;
    clock->random(clock, before, sizeof before);
    assert_int_equal(pipe(pipe_fds), 0);
    child = fork();
    if (child == 0) {
        clock->random(clock, theirs, sizeof theirs);
        _exit(write(pipe_fds[1], theirs, sizeof theirs) != sizeof theirs);
    }
    clock->random(clock, mine, sizeof mine);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(read(pipe_fds[0], theirs, sizeof theirs), sizeof theirs);
    for (size_t at = 0; at < sizeof mine; at += 16)
        assert_memory_not_equal(mine + at, theirs + at, 16);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void
random_bytes_do_not_repeat(void **state)
{
    static uint8_t seen[512][8];
    const struct idem_clock *clock = idem_clock_system();

    (void)state;
    for (int i = 0; i < 512; i++) {
        clock->random(clock, seen[i], sizeof seen[i]);
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(seen[i], seen[j], sizeof seen[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_written_once_and_its_status_handed_back),
        cmocka_unit_test(codes_and_effects_have_names),
        cmocka_unit_test(digests_are_those_of_the_standards),
        cmocka_unit_test(a_checksum_is_that_of_its_bits),
        cmocka_unit_test(parts_cannot_run_into_one_another),
        cmocka_unit_test(parts_are_packed),
        cmocka_unit_test(a_part_is_its_size_and_its_bytes),
        cmocka_unit_test(a_number_between_is_between_and_reaches_both_ends),
        cmocka_unit_test(the_clock_of_the_system_wakes_at_its_time),
        cmocka_unit_test(a_child_gets_other_random_bytes_than_its_parent),
        cmocka_unit_test(random_bytes_do_not_repeat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
