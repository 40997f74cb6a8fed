#include "support.h"

#include "arena.h"
#include "wire_bytes.h"

#include <string.h>

#include <idem/fingerprint.h>
#include <idem/message.h>

#include "shapes.pb-c.h"

static const struct idem_map_field maps[] = {
    {&shapes__v1__all__descriptor, 40},
    {&shapes__v1__all__descriptor, 41},
};
static const struct idem_ignored_field ignored[] = {
    {&shapes__v1__all__descriptor, 15},
    {&shapes__v1__inner__descriptor, 5},
};
static const struct idem_method plain = {.maps = maps, .n_maps = 2};
static const struct idem_method leaves_out = {
    .maps = maps, .n_maps = 2, .ignored = ignored, .n_ignored = 2};

static struct idem_fingerprint
print_with(const struct idem_method *method, const struct wire_bytes *w)
{
    struct idem_arena *arena = arena_new(4096, 0);
    struct ProtobufCMessage *message;
    struct idem_fingerprint made;

    assert_int_equal(idem_message_unpack(&shapes__v1__all__descriptor,
                                         wire_view(w), NULL, arena, &message,
                                         NULL),
                     IDEM_OK);
    idem_fingerprint_make(&made, method, wire_view(w), message);
    arena_free(arena);
    return made;
}

static void
assert_equal_as(const struct idem_method *method, const struct wire_bytes *a,
                const struct wire_bytes *b)
{
    struct idem_fingerprint one = print_with(method, a),
                            two = print_with(method, b);

    assert_memory_equal(one.canonical, two.canonical, sizeof(one.canonical));
    assert_true(idem_fingerprint_match(&one, &two));
}

static void
assert_differ(const struct wire_bytes *a, const struct wire_bytes *b)
{
    struct idem_fingerprint one = print_with(&plain, a),
                            two = print_with(&plain, b);

    assert_memory_not_equal(one.canonical, two.canonical,
                            sizeof(one.canonical));
    assert_false(idem_fingerprint_match(&one, &two));
}

/* Fault 62: two methods that share their keys, and the same bytes. */
static void
a_method_that_shares_its_keys_counts(void **state)
{
    static const struct idem_method charge = {.name = "a.B/Charge",
                                              .shares_keys = true};
    static const struct idem_method refund = {.name = "a.B/Refund",
                                              .shares_keys = true};
    struct wire_bytes w = {.size = 0};
    struct idem_fingerprint one, same, other, alone;

    (void)state;
    wire_number(&w, 1, 5);
    one = print_with(&charge, &w);
    same = print_with(&charge, &w);
    other = print_with(&refund, &w);
    alone = print_with(&plain, &w);
    assert_true(idem_fingerprint_match(&one, &same));
    assert_false(idem_fingerprint_match(&one, &other));
    assert_false(idem_fingerprint_match(&one, &alone));
}

/* Cases B021 and fault 46 */
static void
the_order_of_fields_does_not_count(void **state)
{
    struct wire_bytes a = {.size = 0}, b = {.size = 0};

    (void)state;
    wire_number(&a, 1, 5);
    wire_text(&a, 15, "x");
    wire_number(&a, 900, 1);
    wire_number(&a, 901, 2);
    wire_number(&b, 901, 2);
    wire_text(&b, 15, "x");
    wire_number(&b, 900, 1);
    wire_number(&b, 1, 5);
    assert_equal_as(&plain, &a, &b);
}

/* Fault 47: a new field that an upgrade filled with its default. */
static void
an_explicit_default_of_proto3_does_not_count(void **state)
{
    struct wire_bytes a = {.size = 0}, b = {.size = 0};

    (void)state;
    wire_number(&a, 1, 5);
    wire_number(&b, 1, 0);
    wire_number(&b, 1, 5);
    wire_number(&b, 4, 0);
    wire_fixed64(&b, 12, 0);
    wire_number(&b, 13, 0);
    wire_number(&b, 14, 0);
    wire_text(&b, 15, "");
    wire_text(&b, 16, "");
    assert_equal_as(&plain, &a, &b);
}

/* Case B094: with presence, zero and absent are two requests. */
static void
an_explicit_default_with_presence_counts(void **state)
{
    struct wire_bytes none = {.size = 0}, zero = {.size = 0},
                      empty = {.size = 0}, pick = {.size = 0};

    (void)state;
    wire_number(&zero, 18, 0);
    assert_differ(&none, &zero);
    wire_text(&empty, 23, "");
    assert_differ(&none, &empty);
    empty.size = 0;
    wire_text(&empty, 17, "");
    assert_differ(&none, &empty);
    wire_number(&pick, 21, 0);
    assert_differ(&none, &pick);
    empty.size = 0;
    wire_text(&empty, 19, "");
    assert_differ(&pick, &empty);
}

static void
packed_and_unpacked_are_one(void **state)
{
    struct wire_bytes a = {.size = 0}, b = {.size = 0}, packed = {.size = 0};

    (void)state;
    wire_number(&a, 31, 1);
    wire_number(&a, 31, 300);
    wire_varint(&packed, 1);
    wire_varint(&packed, 300);
    wire_sized(&b, 31, packed.data, packed.size);
    assert_equal_as(&plain, &a, &b);
    b.size = 0;
    wire_number(&b, 31, 300);
    wire_number(&b, 31, 1);
    assert_differ(&a, &b);
}

static void
add_count(struct wire_bytes *w, const char *key, uint64_t value)
{
    struct wire_bytes entry = {.size = 0};

    wire_text(&entry, 1, key);
    wire_number(&entry, 2, value);
    wire_nested(w, 40, &entry);
}

static void
the_order_of_a_map_does_not_count(void **state)
{
    struct wire_bytes a = {.size = 0}, b = {.size = 0};

    (void)state;
    add_count(&a, "one", 1);
    add_count(&a, "two", 2);
    add_count(&a, "three", 3);
    add_count(&b, "three", 3);
    add_count(&b, "one", 7); /* the last entry of a key counts */
    add_count(&b, "two", 2);
    add_count(&b, "one", 1);
    assert_equal_as(&plain, &a, &b);
    b.size = 0;
    add_count(&b, "one", 1);
    add_count(&b, "two", 3);
    add_count(&b, "three", 2);
    assert_differ(&a, &b);
}

static void
a_map_entry_without_key_or_value_has_the_defaults(void **state)
{
    struct wire_bytes a = {.size = 0}, b = {.size = 0}, entry = {.size = 0};

    (void)state;
    wire_nested(&a, 40, &entry);
    wire_nested(&a, 41, &entry);
    add_count(&b, "", 0);
    wire_number(&entry, 1, 0);
    wire_text(&entry, 2, "");
    wire_nested(&b, 41, &entry);
    assert_equal_as(&plain, &a, &b);
}

/* Which is why the generator says which fields are maps. */
static void
the_order_of_a_repeated_message_counts(void **state)
{
    const struct idem_method without_maps = {.n_maps = 0};
    struct wire_bytes a = {.size = 0}, b = {.size = 0};

    (void)state;
    add_count(&a, "one", 1);
    add_count(&a, "two", 2);
    add_count(&b, "two", 2);
    add_count(&b, "one", 1);

    struct idem_fingerprint one = print_with(&without_maps, &a),
                            two = print_with(&without_maps, &b);

    assert_false(idem_fingerprint_match(&one, &two));
}

/* Case B093 */
static void
a_message_in_two_parts_is_the_merged_one(void **state)
{
    struct wire_bytes a = {.size = 0}, b = {.size = 0}, whole = {.size = 0},
                      part = {.size = 0};

    (void)state;
    wire_number(&whole, 1, 1);
    wire_number(&whole, 2, 2);
    wire_nested(&a, 17, &whole);
    wire_number(&part, 2, 2);
    wire_nested(&b, 17, &part);
    part.size = 0;
    wire_number(&part, 1, 1);
    wire_nested(&b, 17, &part);
    assert_equal_as(&plain, &a, &b);
}

static void
ignored_fields_do_not_count_at_any_depth(void **state)
{
    struct wire_bytes a = {.size = 0}, b = {.size = 0}, inner = {.size = 0};

    (void)state;
    wire_number(&inner, 1, 1);
    wire_nested(&a, 17, &inner);
    wire_text(&a, 15, "first try");
    wire_text(&inner, 5, "again");
    wire_nested(&b, 17, &inner);
    wire_text(&b, 15, "second try");
    assert_equal_as(&leaves_out, &a, &b);
    assert_differ(&a, &b);
}

/* Every field alone, with two values: all differ from each other and from
 * nothing. */
static void
any_change_of_one_field_counts(void **state)
{
    enum { MAX = 128 };
    static struct wire_bytes w[MAX];
    static struct idem_fingerprint prints[MAX];
    unsigned n = 1; /* the first is empty */
    static const unsigned varints[] = {1,  2,  4,  5,  7,  9,  13, 14,
                                       18, 21, 31, 32, 33, 38, 900};
    static const unsigned texts[] = {15, 16, 19, 22, 23, 35, 36, 901};
    static const unsigned messages[] = {17, 20, 37};

    (void)state;
    memset(w, 0, sizeof(w));
    for (unsigned i = 0; i < sizeof(varints) / sizeof(varints[0]); i++) {
        wire_number(&w[n++], varints[i], 1);
        if (varints[i] != 13 && varints[i] != 33)
            wire_number(&w[n++], varints[i], 2);
    }
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        wire_text(&w[n++], texts[i], "a");
        wire_text(&w[n++], texts[i], "b");
    }
    for (unsigned i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        struct wire_bytes inner = {.size = 0};

        wire_nested(&w[n++], messages[i], &inner);
        wire_number(&inner, 1, 1);
        wire_nested(&w[n++], messages[i], &inner);
        inner.size = 0;
        wire_number(&inner, 2, 1);
        wire_nested(&w[n++], messages[i], &inner);
    }
    wire_fixed32(&w[n++], 3, 1);
    wire_fixed32(&w[n++], 8, 1);
    wire_fixed32(&w[n++], 11, 0x80000000); /* -0.0 */
    wire_fixed64(&w[n++], 6, 1);
    wire_fixed64(&w[n++], 10, 1);
    wire_fixed64(&w[n++], 12, 1);
    wire_number(&w[n++], 1, (uint64_t)-1);
    wire_number(&w[n++], 7, UINT32_MAX);
    assert_true(n <= MAX);
    for (unsigned i = 0; i < n; i++)
        prints[i] = print_with(&plain, &w[i]);
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < i; j++)
            assert_false(idem_fingerprint_match(&prints[i], &prints[j]));
}

static void
another_version_of_the_form_matches_by_the_bytes_only(void **state)
{
    struct wire_bytes a = {.size = 0}, b = {.size = 0};

    (void)state;
    wire_number(&a, 1, 5);
    wire_number(&b, 1, 0);
    wire_number(&b, 1, 5);

    struct idem_fingerprint one = print_with(&plain, &a),
                            same = print_with(&plain, &a),
                            other = print_with(&plain, &b);

    assert_int_equal(one.version, IDEM_FINGERPRINT_VERSION);
    same.version++;
    other.version++;
    memset(same.canonical, 0, sizeof(same.canonical));
    assert_true(idem_fingerprint_match(&one, &same));
    assert_false(idem_fingerprint_match(&one, &other));
}

static void
without_canonical_hashes_only_the_bytes_are_compared(void **state)
{
    struct wire_bytes a = {.size = 0}, b = {.size = 0};
    struct idem_fingerprint one, other;

    (void)state;
    wire_number(&a, 1, 5);
    wire_number(&b, 1, 6);
    idem_fingerprint_of_bytes(&one, &plain, wire_view(&a));
    idem_fingerprint_of_bytes(&other, &plain, wire_view(&b));
    assert_int_equal(one.version, 0);
    assert_true(idem_fingerprint_match(&one, &one));
    assert_false(idem_fingerprint_match(&one, &other));
    other = print_with(&plain, &a);
    assert_true(idem_fingerprint_match(&one, &other));
}

/* The form is stored: a change of it must change its version too. The hash was
 * computed from the description in canonical.h by another program. */
static void
the_form_of_version_1_stays(void **state)
{
    static const uint8_t known[32] = {
        0x06, 0x0e, 0x09, 0x96, 0x0e, 0xaa, 0x8a, 0x5e, 0x61, 0x5b, 0x31,
        0x6f, 0xf9, 0x2b, 0xfc, 0x77, 0xe5, 0x14, 0x84, 0x7f, 0x77, 0x0f,
        0x8c, 0x5a, 0x5b, 0xec, 0x5e, 0x14, 0x04, 0xe8, 0x01, 0xa3};
    struct wire_bytes w = {.size = 0}, inner = {.size = 0};

    (void)state;
    wire_number(&inner, 1, (uint64_t)-3);
    wire_number(&inner, 3, 4);
    wire_number(&w, 1, 5);
    wire_text(&w, 15, "text");
    wire_nested(&w, 17, &inner);
    add_count(&w, "one", 1);
    wire_number(&w, 900, 6);

    struct idem_fingerprint made = print_with(&plain, &w);

    assert_memory_equal(made.canonical, known, sizeof(known));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_method_that_shares_its_keys_counts),
        cmocka_unit_test(the_order_of_fields_does_not_count),
        cmocka_unit_test(an_explicit_default_of_proto3_does_not_count),
        cmocka_unit_test(an_explicit_default_with_presence_counts),
        cmocka_unit_test(packed_and_unpacked_are_one),
        cmocka_unit_test(the_order_of_a_map_does_not_count),
        cmocka_unit_test(a_map_entry_without_key_or_value_has_the_defaults),
        cmocka_unit_test(the_order_of_a_repeated_message_counts),
        cmocka_unit_test(a_message_in_two_parts_is_the_merged_one),
        cmocka_unit_test(ignored_fields_do_not_count_at_any_depth),
        cmocka_unit_test(any_change_of_one_field_counts),
        cmocka_unit_test(another_version_of_the_form_matches_by_the_bytes_only),
        cmocka_unit_test(without_canonical_hashes_only_the_bytes_are_compared),
        cmocka_unit_test(the_form_of_version_1_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
