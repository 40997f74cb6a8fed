/* Messages, compressed and back; and what is none. */
#include "support.h"

#include "codec.h"

#include <stdlib.h>
#include <string.h>

#define SIZE 5000
#define HEAD 5

static int
set_up(void **state)
{
    *state = idem_arena_new();
    return *state ? 0 : -1;
}

static int
tear_down(void **state)
{
    idem_arena_free(*state);
    return 0;
}

/* Text that is worth it. */
static struct idem_bytes
text_of(size_t size)
{
    static uint8_t text[100000];

    for (size_t i = 0; i < size; i++)
        text[i] = (uint8_t)("account balance "[i % 16] + (i / 500) % 3);
    return (struct idem_bytes){text, size};
}

static struct idem_bytes
noise_of(size_t size)
{
    static uint8_t noise[SIZE];
    uint32_t seed = 12345;

    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        noise[i] = (uint8_t)(seed >> 24);
    }
    return (struct idem_bytes){noise, size};
}

static struct idem_bytes
squeezed_of(enum idem_codec codec, struct idem_bytes message,
            struct idem_arena *arena)
{
    const struct idem_compression how = {.codec = codec, .threshold = 1};
    struct idem_bytes squeezed;

    assert_true(codec_squeeze(&squeezed, &how, message, arena));
    return squeezed;
}

static void
each_codec_and_level_goes_round(void **state)
{
    static const struct idem_compression hows[] = {
        {IDEM_CODEC_ZLIB, 0, 0}, {IDEM_CODEC_ZLIB, 0, 1},
        {IDEM_CODEC_ZLIB, 0, 9}, {IDEM_CODEC_ZSTD, 0, 0},
        {IDEM_CODEC_ZSTD, 0, 1}, {IDEM_CODEC_ZSTD, 0, 19},
    };
    static const size_t sizes[] = {1024, 1025, SIZE, 100000};

    for (unsigned i = 0; i < sizeof hows / sizeof *hows; i++)
        for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            struct idem_bytes message = text_of(sizes[j]), squeezed, back;

            assert_true(codec_squeeze(&squeezed, &hows[i], message, *state));
            assert_true(squeezed.size < message.size / 2);
            assert_int_equal(codec_open(&back, squeezed, message.size, *state),
                             CODEC_OPENED);
            assert_true(idem_bytes_equal(back, message));
        }
}

static void
what_is_small_or_noise_goes_as_it_is(void **state)
{
    struct idem_compression how = {.codec = IDEM_CODEC_ZSTD};
    struct idem_bytes squeezed;

    assert_false(codec_squeeze(&squeezed, &how, text_of(1023), *state));
    assert_true(codec_squeeze(&squeezed, &how, text_of(1024), *state));
    assert_false(codec_squeeze(&squeezed, &how, noise_of(SIZE), *state));
    how.threshold = 1;
    assert_true(codec_squeeze(&squeezed, &how, text_of(200), *state));
    assert_false(codec_squeeze(&squeezed, &how, text_of(5), *state));
    how.codec = IDEM_CODEC_ZLIB;
    assert_false(codec_squeeze(&squeezed, &how, noise_of(SIZE), *state));
}

/* 100,000 bytes out of a few: over the limit nothing is made of it. */
static void
a_bomb_is_told_by_its_size_and_a_lie_by_its_bytes(void **state)
{
    static const enum idem_codec codecs[] = {IDEM_CODEC_ZLIB, IDEM_CODEC_ZSTD};

    for (unsigned i = 0; i < 2; i++) {
        struct idem_bytes bomb =
            squeezed_of(codecs[i], text_of(100000), *state);
        uint8_t *lie = idem_arena_copy(*state, bomb);
        struct idem_bytes back;

        assert_true(bomb.size < 2000);
        assert_int_equal(codec_open(&back, bomb, 99999, *state),
                         CODEC_OVERSIZE);
        assert_int_equal(back.size, 100000);
        assert_null(back.data);
        for (uint32_t size = 99999; size > 0; size /= 3) {
            memcpy(lie + 1, &size, sizeof size);
            assert_int_equal(codec_open(&back,
                                        (struct idem_bytes){lie, bomb.size},
                                        100000, *state),
                             CODEC_BROKEN);
        }
    }
}

static void
what_is_cut_or_touched_is_broken_or_itself(void **state)
{
    static const enum idem_codec codecs[] = {IDEM_CODEC_ZLIB, IDEM_CODEC_ZSTD};
    struct idem_bytes message = text_of(SIZE), back;

    for (unsigned i = 0; i < 2; i++) {
        struct idem_bytes whole = squeezed_of(codecs[i], message, *state);

        for (size_t size = 0; size < whole.size; size++) {
            uint8_t *cut = malloc(size + 1); /* ASan sees its end */

            memcpy(cut, whole.data, size);
            assert_int_equal(
                codec_open(&back, (struct idem_bytes){cut, size}, SIZE, *state),
                CODEC_BROKEN);
            free(cut);
        }
        for (size_t at = HEAD; at < whole.size; at++) {
            uint8_t *touched = idem_arena_copy(*state, whole);

            touched[at] ^= 0x55;
            (void)codec_open(&back, (struct idem_bytes){touched, whole.size},
                             SIZE, *state);
        }
    }
}

static void
more_than_the_message_and_other_codecs_are_broken(void **state)
{
    struct idem_bytes whole =
        squeezed_of(IDEM_CODEC_ZLIB, text_of(SIZE), *state);
    uint8_t *more = idem_arena_alloc(*state, whole.size + 1);
    struct idem_bytes back;

    memcpy(more, whole.data, whole.size);
    more[whole.size] = 0;
    assert_int_equal(codec_open(&back,
                                (struct idem_bytes){more, whole.size + 1}, SIZE,
                                *state),
                     CODEC_BROKEN);
    for (unsigned codec = 0; codec < 256; codec++) {
        more[0] = (uint8_t)codec;
        if (codec != IDEM_CODEC_ZLIB)
            assert_int_equal(codec_open(&back,
                                        (struct idem_bytes){more, whole.size},
                                        SIZE, *state),
                             CODEC_BROKEN);
    }
}

static void
options_that_are_wrong_are_named(void **state)
{
    static const struct {
        struct idem_compression how;
        const char *why;
    } cases[] = {
        {{(enum idem_codec)3, 0, 0}, "there is no codec 3"},
        {{IDEM_CODEC_NONE, 100, 0}, "threshold and level need a codec"},
        {{IDEM_CODEC_NONE, 0, 1}, "threshold and level need a codec"},
        {{IDEM_CODEC_ZLIB, 0, 10}, "level 10 is not of 0 to 9"},
        {{IDEM_CODEC_ZSTD, 0, -1}, "level -1 is not of 0 to 19"},
    };
    struct idem_error err;

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(codec_check(&cases[i].how, &err),
                         IDEM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, cases[i].why));
    }
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_codec_and_level_goes_round),
        TEST(what_is_small_or_noise_goes_as_it_is),
        TEST(a_bomb_is_told_by_its_size_and_a_lie_by_its_bytes),
        TEST(what_is_cut_or_touched_is_broken_or_itself),
        TEST(more_than_the_message_and_other_codecs_are_broken),
        TEST(options_that_are_wrong_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
