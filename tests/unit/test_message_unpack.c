#include "support.h"

#include "arena.h"
#include "message.h"
#include "wire_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "shapes.pb-c.h"

static int
set_up(void **state)
{
    *state = arena_new(1024, 0);
    return 0;
}

static int
tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static enum idem_status
unpack(struct idem_arena *arena, const struct wire_bytes *w,
       Shapes__V1__All **all, struct idem_error *err)
{
    struct ProtobufCMessage *message = NULL;
    enum idem_status status = idem_message_unpack(
        &shapes__v1__all__descriptor, wire_view(w), NULL, arena, &message, err);

    *all = (Shapes__V1__All *)message;
    return status;
}

static Shapes__V1__All *
unpacked(struct idem_arena *arena, const struct wire_bytes *w)
{
    Shapes__V1__All *all;
    struct idem_error err = {.message = ""};

    if (unpack(arena, w, &all, &err) != IDEM_OK)
        fail_msg("%s", err.message);
    return all;
}

/* It is refused with that status, and the text names what it must. */
static void
refused(struct idem_arena *arena, const struct wire_bytes *w,
        enum idem_status status, const char *text)
{
    Shapes__V1__All *all = NULL;
    struct idem_error err = {.message = ""};

    assert_int_equal(unpack(arena, w, &all, &err), status);
    assert_null(all);
    if (!strstr(err.message, text))
        fail_msg("\"%s\" does not say \"%s\"", err.message, text);
}

static void
every_kind_of_field_is_read(void **state)
{
    struct wire_bytes w = {.size = 0}, inner = {.size = 0};
    const double real = 2.5;
    uint64_t bits;

    memcpy(&bits, &real, sizeof(bits));
    wire_number(&inner, 1, 11);
    wire_number(&w, 1, (uint64_t)-5);
    wire_number(&w, 2, 9); /* zigzag of -5 */
    wire_fixed32(&w, 3, (uint32_t)-5);
    wire_number(&w, 5, UINT64_MAX); /* zigzag of INT64_MIN */
    wire_number(&w, 9, UINT64_MAX);
    wire_fixed64(&w, 10, 77);
    wire_fixed64(&w, 12, bits);
    wire_number(&w, 13, UINT64_C(1) << 40);
    wire_number(&w, 14, 99); /* B094: an enum value that is not known */
    wire_text(&w, 15, "caf\xC3\xA9");
    wire_sized(&w, 16, "a\0b", 3);
    wire_nested(&w, 17, &inner);
    wire_number(&w, 18, 0);

    Shapes__V1__All *all = unpacked(*state, &w);

    assert_int_equal(all->i32, -5);
    assert_int_equal(all->s32, -5);
    assert_int_equal(all->sf32, -5);
    assert_true(all->s64 == INT64_MIN);
    assert_true(all->u64 == UINT64_MAX);
    assert_int_equal(all->f64, 77);
    assert_true(all->big == 2.5);
    assert_int_equal(all->flag, 1);
    assert_int_equal(all->color, 99);
    assert_string_equal(all->text, "caf\xC3\xA9");
    assert_int_equal(all->blob.len, 3);
    assert_memory_equal(all->blob.data, "a\0b", 3);
    assert_int_equal(all->inner->a, 11);
    /* proto3 optional: set to zero is not unset. */
    assert_int_equal(all->_maybe_case, SHAPES__V1__ALL___MAYBE_MAYBE);
    assert_string_equal(all->inner->name, "");
}

static void
repeated_fields_are_read_packed_and_not(void **state)
{
    struct wire_bytes w = {.size = 0}, packed = {.size = 0};

    wire_varint(&packed, 1);
    wire_varint(&packed, 300);
    wire_number(&w, 31, 7);
    wire_sized(&w, 31, packed.data, packed.size);
    wire_sized(&w, 31, "", 0);
    wire_number(&w, 31, 8);
    for (unsigned i = 0; i < 50; i++)
        wire_text(&w, 35, "x");
    packed.size = 0;
    wire_raw(&packed, "\1\0\0\0\2\0\0\0", 8);
    wire_sized(&w, 39, packed.data, packed.size);

    Shapes__V1__All *all = unpacked(*state, &w);

    assert_int_equal(all->n_r_i32, 4);
    assert_int_equal(all->r_i32[0], 7);
    assert_int_equal(all->r_i32[2], 300);
    assert_int_equal(all->r_i32[3], 8);
    assert_int_equal(all->n_r_text, 50);
    assert_string_equal(all->r_text[49], "x");
    assert_int_equal(all->n_r_f32, 2);
    assert_int_equal(all->r_f32[1], 2);
}

/* Case B093, and the three tests of protobuf's conformance suite that
 * libprotobuf-c fails: RepeatedScalarMessageMerge, ValidDataOneof.MESSAGE.Merge
 * and its binary twin. */
static void
two_copies_of_a_message_are_merged(void **state)
{
    struct wire_bytes w = {.size = 0}, first = {.size = 0},
                      second = {.size = 0}, deep = {.size = 0};

    wire_number(&deep, 2, 22);
    wire_number(&first, 1, 1);
    wire_number(&first, 2, 2);
    wire_number(&first, 3, 31);
    wire_nested(&first, 4, &deep);
    wire_number(&second, 2, 20);
    wire_number(&second, 3, 32);
    deep.size = 0;
    wire_number(&deep, 1, 11);
    wire_nested(&second, 4, &deep);
    wire_nested(&w, 17, &first);
    wire_number(&w, 1, 5);
    wire_nested(&w, 17, &second);
    wire_nested(&w, 20, &first);
    wire_nested(&w, 20, &second);

    Shapes__V1__All *all = unpacked(*state, &w);
    const Shapes__V1__Inner *merged[] = {all->inner, all->pick_inner};

    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(merged[i]->a, 1);
        assert_int_equal(merged[i]->b, 20);
        assert_int_equal(merged[i]->n_list, 2);
        assert_int_equal(merged[i]->list[1], 32);
        assert_int_equal(merged[i]->inner->a, 11);
        assert_int_equal(merged[i]->inner->b, 22);
    }
}

static void
the_last_member_of_a_oneof_wins_and_begins_empty(void **state)
{
    struct wire_bytes w = {.size = 0}, inner = {.size = 0};

    wire_number(&inner, 1, 1);
    wire_nested(&w, 20, &inner);
    wire_text(&w, 19, "text");
    inner.size = 0;
    wire_number(&inner, 2, 2);
    wire_nested(&w, 20, &inner);

    Shapes__V1__All *all = unpacked(*state, &w);

    assert_int_equal(all->pick_case, SHAPES__V1__ALL__PICK_PICK_INNER);
    assert_int_equal(all->pick_inner->a, 0);
    assert_int_equal(all->pick_inner->b, 2);
    wire_number(&w, 21, 4);
    all = unpacked(*state, &w);
    assert_int_equal(all->pick_case, SHAPES__V1__ALL__PICK_PICK_NUMBER);
    assert_int_equal(all->pick_number, 4);
}

/* Case B086 */
static void
nesting_is_read_to_its_limit_and_refused_above(void **state)
{
    struct wire_bytes w = {.size = 0};

    wire_deep(&w, 4, 99);
    struct wire_bytes inner = w;
    w.size = 0;
    wire_nested(&w, 17, &inner);
    unpacked(*state, &w);
    w.size = 0;
    wire_deep(&w, 4, 100);
    inner = w;
    w.size = 0;
    wire_nested(&w, 17, &inner);
    refused(*state, &w, IDEM_INVALID_ARGUMENT, "100");
    w.size = 0;
    wire_deep(&w, 4, 1000);
    inner = w;
    w.size = 0;
    wire_nested(&w, 17, &inner);
    refused(*state, &w, IDEM_INVALID_ARGUMENT, "shapes.v1.Inner");
}

/* Case B026 */
static void
a_string_with_a_nul_or_not_utf8_is_refused_and_named(void **state)
{
    struct wire_bytes w = {.size = 0};

    wire_sized(&w, 15, "a\0b", 3);
    refused(*state, &w, IDEM_INVALID_ARGUMENT, "shapes.v1.All.text");
    w.size = 0;
    wire_text(&w, 35, "\xED\xA0\x80");
    refused(*state, &w, IDEM_INVALID_ARGUMENT, "shapes.v1.All.r_text");
    w.size = 0;
    wire_text(&w, 19, "\xC0\x80");
    refused(*state, &w, IDEM_INVALID_ARGUMENT, "pick_text");
}

/* Case B089 */
static void
lengths_and_varints_that_cannot_be_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } wrong[] = {
        {"\x7A\xFF\xFF\xFF\xFF\x07", 6},                      /* 2^31-1 */
        {"\x7A\xFF\xFF\xFF\xFF\x0F", 6},                      /* 2^32-1 */
        {"\x7A\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11}, /* 2^63 */
        {"\x7A\x05", 2},
        {"\x7A", 1},
        {"\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 12},
        {"\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02", 11},
        {"\x08", 1},
        {"\x08\x80", 2},
        {"\x88\x80\x80\x80\x80\x00\x01", 7}, /* a tag of six bytes */
        {"\x00\x01", 2},                     /* field 0 */
        {"\x1D\x01\x02", 3},                 /* fixed32, cut */
        {"\x31\x01\x02", 3},                 /* fixed64, cut */
        {"\x0B\x0C", 2},                     /* a group */
        {"\x0C", 1},
        {"\x0E\x01", 2},                 /* wire type 6 */
        {"\x0D\x01\x02\x03\x04", 5},     /* int32 as fixed32 */
        {"\x78\x01", 2},                 /* string as a varint */
        {"\xBA\x02\x03\x01\x02\x03", 6}, /* packed fixed32 of 3 bytes */
        {"\xFA\x01\x02\x01\x80", 5},     /* packed varint, cut */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct wire_bytes w = {.size = 0};

        wire_raw(&w, wrong[i].bytes, wrong[i].size);
        refused(*state, &w, IDEM_INVALID_ARGUMENT, "shapes.v1.All");
    }
}

static void
unknown_fields_are_kept_up_to_a_bound(void **state)
{
    struct wire_bytes w = {.size = 0};
    struct ProtobufCMessage *message;
    struct idem_error err;

    wire_number(&w, 1, 5);
    wire_text(&w, 900, "kept");
    wire_number(&w, 901, 6);

    Shapes__V1__All *all = unpacked(*state, &w);
    uint8_t packed[64];

    assert_int_equal(all->base.n_unknown_fields, 2);
    assert_int_equal(protobuf_c_message_pack(&all->base, packed), w.size);
    assert_memory_equal(packed, w.data, w.size);

    /* Case B095: half a million of the smallest there are. */
    size_t size = 1 << 20;
    uint8_t *many = calloc(1, size);
    struct idem_arena *arena = arena_new(1024, 0);

    for (size_t i = 0; i < size; i += 2)
        many[i] = 0x78; /* field 15 of Less, as a varint */
    assert_int_equal(idem_message_unpack(&shapes__v1__less__descriptor,
                                         (struct idem_bytes){many, size}, NULL,
                                         arena, &message, &err),
                     IDEM_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.message, "65536"));
    assert_true(arena_size(arena) < (size_t)8 << 20);
    arena_free(arena);
    free(many);
}

static bool
lies_in(const struct wire_bytes *w, ProtobufCBinaryData bytes)
{
    struct idem_bytes view = wire_view(w);

    return bytes.data >= view.data &&
           bytes.data + bytes.len <= view.data + view.size;
}

/* Strings need a NUL of their own. */
static void
in_place_bytes_are_those_that_were_read_and_strings_are_copied(void **state)
{
    struct wire_bytes w = {.size = 0};
    struct ProtobufCMessage *message;
    Shapes__V1__All *all;

    wire_sized(&w, 16, "a\0b", 3);
    wire_sized(&w, 36, "first", 5);
    wire_sized(&w, 36, "", 0);
    wire_text(&w, 15, "text");
    assert_int_equal(message_unpack_in_place(&shapes__v1__all__descriptor,
                                             wire_view(&w), NULL, *state,
                                             &message, NULL),
                     IDEM_OK);
    all = (Shapes__V1__All *)message;
    assert_int_equal(all->blob.len, 3);
    assert_memory_equal(all->blob.data, "a\0b", 3);
    assert_true(lies_in(&w, all->blob));
    assert_int_equal(all->n_r_blob, 2);
    assert_memory_equal(all->r_blob[0].data, "first", 5);
    assert_true(lies_in(&w, all->r_blob[0]));
    assert_int_equal(all->r_blob[1].len, 0);
    assert_null(all->r_blob[1].data);
    assert_string_equal(all->text, "text");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_kind_of_field_is_read),
        TEST(repeated_fields_are_read_packed_and_not),
        TEST(two_copies_of_a_message_are_merged),
        TEST(the_last_member_of_a_oneof_wins_and_begins_empty),
        TEST(nesting_is_read_to_its_limit_and_refused_above),
        TEST(a_string_with_a_nul_or_not_utf8_is_refused_and_named),
        TEST(lengths_and_varints_that_cannot_be_are_refused),
        TEST(unknown_fields_are_kept_up_to_a_bound),
        TEST(in_place_bytes_are_those_that_were_read_and_strings_are_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
