#include "support.h"

#include "arena.h"
#include "metadata.h"

#include <stdio.h>
#include <string.h>

struct world {
    struct idem_arena *arena;
    struct idem_metadata metadata;
    struct idem_error err;
};

static enum idem_status
add(struct world *w, const char *name, const char *value)
{
    return idem_metadata_add(&w->metadata, w->arena, idem_bytes_of(name),
                             idem_bytes_of(value), &w->err);
}

static int
set_up(void **state)
{
    static struct world world;

    world = (struct world){.arena = arena_new(512, 0)};
    *state = &world;
    return 0;
}

static int
tear_down(void **state)
{
    arena_free(((struct world *)*state)->arena);
    return 0;
}

static const char *
text_of(const struct world *w)
{
    static char text[256];
    size_t used = 0;

    text[0] = 0;
    for (const struct idem_metadata_entry *entry = w->metadata.first; entry;
         entry = entry->next)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%.*s=%.*s ",
            (int)entry->name.size, (const char *)entry->name.data,
            (int)entry->value.size, (const char *)entry->value.data);
    return text;
}

/* rpc 83, 86 */
static void
values_of_one_name_keep_their_order(void **state)
{
    struct world *w = *state;
    static const char *const values[] = {"first", "second", "third"};
    struct idem_bytes value;
    unsigned i = 0;

    assert_false(idem_metadata_get(&w->metadata, "k", &value));
    for (i = 0; i < 3; i++)
        assert_int_equal(add(w, "k", values[i]), IDEM_OK);
    i = 0;
    for (struct idem_metadata_entry *entry = w->metadata.first; entry;
         entry = entry->next)
        assert_string_equal((const char *)entry->value.data, values[i++]);
    assert_int_equal(i, 3);
    assert_true(idem_metadata_get(&w->metadata, "k", &value));
    assert_true(idem_bytes_equal(value, idem_bytes_of("first")));
    assert_false(idem_metadata_get(&w->metadata, "K", &value));
}

/* rpc 82 */
static void
names_and_values_that_break_the_rules_are_internal_and_named(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"",    "/",     "Key",        "a b",
                                        "a\n", "k\x7F", "caf\xC3\xA9"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(add(w, names[i], "v"), IDEM_INTERNAL);
    assert_int_equal(add(w, "my-key", "a\nb"), IDEM_INTERNAL);
    assert_non_null(strstr(w->err.message, "my-key"));
    assert_int_equal(add(w, "my-key", "caf\xC3\xA9"), IDEM_INTERNAL);
    assert_null(w->metadata.first);
    assert_int_equal(add(w, "my-key-bin", "a\nb\xFF"), IDEM_OK);
    assert_int_equal(add(w, "a_b.c-9", "~ plain text !"), IDEM_OK);
}

/* Values are judged eight bytes at a time. */
static void
a_byte_is_judged_the_same_wherever_it_stands(void **state)
{
    struct world *w = *state;
    uint8_t value[19];

    for (size_t size = 1; size <= sizeof(value); size++)
        for (size_t at = 0; at < size; at++)
            for (unsigned byte = 0; byte < 256; byte++) {
                enum idem_status wanted =
                    byte >= 0x20 && byte <= 0x7E ? IDEM_OK : IDEM_INTERNAL;

                memset(value, 'v', sizeof(value));
                value[at] = (uint8_t)byte;
                w->metadata = (struct idem_metadata){0};
                arena_reset(w->arena);
                assert_int_equal(idem_metadata_add(
                                     &w->metadata, w->arena, idem_bytes_of("k"),
                                     (struct idem_bytes){value, size}, NULL),
                                 wanted);
            }
}

static void
it_ends_at_8192_bytes_with_32_for_each_entry(void **state)
{
    struct world *w = *state;
    char value[224];

    memset(value, 'v', sizeof(value));
    value[223] = 0; /* 1 + 223 + 32 is 256 */
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(add(w, "k", value), IDEM_OK);
    assert_int_equal(w->metadata.size, IDEM_METADATA_MAX);
    assert_int_equal(add(w, "k", ""), IDEM_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(w->err.message, "8192"));
}

/* Wherever they stand; and the list can be added to. */
static void
reserved_names_are_taken_out(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"idem-a", "x",      "idem-b", "idem-c",
                                        "y",      "idem-d", "idem"};
    struct idem_bytes value;
    size_t size;

    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(add(w, names[i], "1"), IDEM_OK);
    assert_true(metadata_has_reserved(&w->metadata));
    metadata_drop_reserved(&w->metadata);
    assert_false(idem_metadata_get(&w->metadata, "idem-a", &value));
    assert_int_equal(w->metadata.size, 2 * (1 + 1 + 32) + (4 + 1 + 32));
    assert_int_equal(add(w, "z", "1"), IDEM_OK);
    assert_string_equal(text_of(w), "x=1 y=1 idem=1 z=1 ");

    assert_false(metadata_has_reserved(&w->metadata));
    size = w->metadata.size;
    metadata_drop_reserved(&w->metadata);
    assert_int_equal(w->metadata.size, size);
    w->metadata = (struct idem_metadata){0};
    assert_int_equal(add(w, "idem-a", "1"), IDEM_OK);
    metadata_drop_reserved(&w->metadata);
    assert_null(w->metadata.first);
    assert_int_equal(w->metadata.size, 0);
    assert_int_equal(add(w, "x", "1"), IDEM_OK);
    assert_string_equal(text_of(w), "x=1 ");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(values_of_one_name_keep_their_order),
        TEST(names_and_values_that_break_the_rules_are_internal_and_named),
        TEST(a_byte_is_judged_the_same_wherever_it_stands),
        TEST(reserved_names_are_taken_out),
        TEST(it_ends_at_8192_bytes_with_32_for_each_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
