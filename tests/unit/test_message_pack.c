#include "support.h"

#include "arena.h"
#include "fake_clock.h"
#include "message.h"
#include "wire_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "shapes.pb-c.h"
#include "shapes_old.pb-c.h"

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

static void
broken(struct idem_arena *arena, const ProtobufCMessage *message,
       const char *field)
{
    struct idem_bytes bytes;
    struct idem_error err = {.message = ""};

    assert_int_equal(idem_message_pack(message, arena, &bytes, &err),
                     IDEM_INTERNAL);
    if (!strstr(err.message, field))
        fail_msg("\"%s\" does not name %s", err.message, field);
}

/* Case B088 */
static void
what_a_handler_left_null_is_internal_and_named(void **state)
{
    Shapes__V1__All all = SHAPES__V1__ALL__INIT;
    Shapes__Old__Form form = SHAPES__OLD__FORM__INIT;
    Shapes__Old__Part part = SHAPES__OLD__PART__INIT;
    char text[] = "text";
    const char *texts[] = {text, NULL};
    Shapes__V1__Inner *inners[] = {NULL};
    ProtobufCBinaryData blobs[] = {{3, NULL}};

    all.n_r_text = 2;
    all.r_text = texts;
    broken(*state, &all.base, "r_text");
    all.r_text = NULL;
    broken(*state, &all.base, "r_text");
    all.n_r_text = 0;
    all.n_r_inner = 1;
    all.r_inner = inners;
    broken(*state, &all.base, "r_inner");
    all.n_r_inner = 0;
    all.n_r_blob = 1;
    all.r_blob = blobs;
    broken(*state, &all.base, "r_blob");
    all.n_r_blob = 0;
    all.pick_case = SHAPES__V1__ALL__PICK_PICK_TEXT;
    broken(*state, &all.base, "pick_text");
    all.pick_case = SHAPES__V1__ALL__PICK_PICK_INNER;
    broken(*state, &all.base, "pick_inner");

    broken(*state, &form.base, "shapes.old.Form.id");
    form.id = text;
    broken(*state, &form.base, "shapes.old.Form.part");
    form.part = &part;
    broken(*state, &form.base, "shapes.old.Part.name");
}

static void
what_no_reader_would_take_is_internal(void **state)
{
    Shapes__V1__All all = SHAPES__V1__ALL__INIT;
    Shapes__V1__Inner loop = SHAPES__V1__INNER__INIT;
    ProtobufCMessage raw = {.descriptor = NULL};
    char text[] = "caf\xE9";

    all.text = text;
    broken(*state, &all.base, "shapes.v1.All.text");
    loop.inner = &loop;
    broken(*state, &loop.base, "100");
    broken(*state, &raw, "not initialised");
    loop.inner = NULL;
    loop.base.descriptor = NULL;
    all.text = NULL;
    all.inner = &loop;
    broken(*state, &all.base, "inner");
}

static void
a_null_string_without_presence_is_empty(void **state)
{
    Shapes__V1__All all = SHAPES__V1__ALL__INIT;
    struct idem_bytes bytes;

    all.text = NULL;
    assert_int_equal(idem_message_pack(&all.base, *state, &bytes, NULL),
                     IDEM_OK);
    assert_int_equal(bytes.size, 0);
    assert_non_null(bytes.data);
}

/* --- Random bytes --- */

static const struct idem_clock *
fixed_random(void)
{
    static struct fake_clock fake;

    fake_clock_init(&fake);
    return &fake.clock;
}

static uint64_t
pick(const struct idem_clock *clock, uint64_t below)
{
    return (uint64_t)idem_clock_between(clock, 0, (int64_t)below - 1);
}

static void
write_inner(struct wire_bytes *w, const struct idem_clock *clock,
            unsigned depth)
{
    struct wire_bytes inner = {.size = 0};

    if (pick(clock, 2))
        wire_number(w, 1, pick(clock, 3));
    for (uint64_t i = pick(clock, 4); i > 0; i--)
        wire_number(w, 3, pick(clock, 1000));
    if (pick(clock, 2))
        wire_number(w, 6, pick(clock, 2));
    if (depth > 0 && pick(clock, 2)) {
        write_inner(&inner, clock, depth - 1);
        wire_nested(w, 4, &inner);
    }
}

static void
write_field(struct wire_bytes *w, const struct idem_clock *clock, bool twice)
{
    static const char *const texts[] = {"", "a", "caf\xC3\xA9", "long text"};
    unsigned field = (unsigned)pick(clock, 46);
    struct wire_bytes inner = {.size = 0};

    if (field >= 1 && field <= 14 && field != 3 && field != 6 && field != 8 &&
        field != 10 && field != 11 && field != 12)
        wire_number(w, field, pick(clock, UINT64_C(1) << pick(clock, 63)));
    else if (field == 3 || field == 8 || field == 11 || field == 39)
        wire_fixed32(w, field, (uint32_t)pick(clock, UINT32_MAX));
    else if (field == 6 || field == 10 || field == 12 || field == 34)
        wire_fixed64(w, field, pick(clock, INT64_MAX));
    else if (field == 15 || field == 16 || field == 19 || field == 22 ||
             field == 23 || field == 35 || field == 36)
        wire_text(w, field, texts[pick(clock, 4)]);
    else if (field == 18 || field == 21 || (field >= 31 && field <= 33) ||
             field == 38 || field > 41)
        wire_number(w, field, pick(clock, 3000));
    else if (field == 37 || field == 41 ||
             (twice && (field == 17 || field == 20))) {
        write_inner(&inner, clock, 3);
        wire_nested(w, field, &inner);
    }
}

static struct idem_bytes
repacked(struct idem_arena *arena, const ProtobufCMessage *message)
{
    struct idem_bytes bytes = {NULL, 0};

    assert_int_equal(idem_message_pack(message, arena, &bytes, NULL), IDEM_OK);
    return bytes;
}

static struct wire_bytes
random_all(const struct idem_clock *clock, bool twice)
{
    struct wire_bytes w = {.size = 0};

    for (uint64_t i = pick(clock, 60); i > 0; i--)
        write_field(&w, clock, twice);
    return w;
}

static void
assert_same(struct idem_bytes a, struct idem_bytes b)
{
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
}

/* What we packed, read by libprotobuf-c and by us, is the same message. */
static void
assert_stable(struct idem_arena *arena, struct idem_bytes packed)
{
    const ProtobufCMessageDescriptor *type = &shapes__v1__all__descriptor;
    ProtobufCMessage *theirs =
        protobuf_c_message_unpack(type, NULL, packed.size, packed.data);
    ProtobufCMessage *ours = NULL;

    assert_non_null(theirs);
    assert_same(repacked(arena, theirs), packed);
    protobuf_c_message_free_unpacked(theirs, NULL);
    assert_int_equal(message_unpack_heap(type, packed, NULL, &ours, NULL),
                     IDEM_OK);
    assert_same(repacked(arena, ours), packed);
    protobuf_c_message_free_unpacked(ours, NULL);
}

static void
random_messages_are_read_as_libprotobuf_c_reads_them(void **state)
{
    const struct idem_clock *clock = fixed_random();
    const ProtobufCMessageDescriptor *type = &shapes__v1__all__descriptor;

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        bool twice = round % 2; /* there it does not merge rightly */
        struct wire_bytes w = random_all(clock, twice);
        struct idem_arena *arena = arena_new(4096, 0);
        struct ProtobufCMessage *ours = NULL;
        struct idem_error err = {.message = ""};

        if (idem_message_unpack(type, wire_view(&w), NULL, arena, &ours,
                                &err) != IDEM_OK)
            fail_msg("%s", err.message);

        struct idem_bytes packed = repacked(arena, ours);

        if (!twice) {
            ProtobufCMessage *theirs =
                protobuf_c_message_unpack(type, NULL, w.size, w.data);

            assert_non_null(theirs);
            assert_same(repacked(arena, theirs), packed);
            protobuf_c_message_free_unpacked(theirs, NULL);
        }
        assert_stable(arena, packed);
        arena_free(arena);
    }
}

/* Case B089, in small: damaged bytes are refused or read, and what is read is a
 * whole message. */
static void
damaged_messages_do_no_harm(void **state)
{
    const struct idem_clock *clock = fixed_random();
    unsigned valid = 0;

    (void)state;
    for (unsigned round = 0; round < 10000; round++) {
        struct wire_bytes w = random_all(clock, true);
        struct ProtobufCMessage *message = NULL;

        for (uint64_t i = pick(clock, 6); i > 0 && w.size > 0; i--)
            w.data[pick(clock, w.size)] = (uint8_t)pick(clock, 256);
        if (message_unpack_heap(&shapes__v1__all__descriptor, wire_view(&w),
                                NULL, &message, NULL) != IDEM_OK)
            continue;

        struct idem_arena *arena = arena_new(4096, 0);

        valid++;
        repacked(arena, message);
        protobuf_c_message_free_unpacked(message, NULL);
        arena_free(arena);
    }
    assert_in_range(valid, 1000, 9999);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_a_handler_left_null_is_internal_and_named),
        TEST(what_no_reader_would_take_is_internal),
        TEST(a_null_string_without_presence_is_empty),
        TEST(random_messages_are_read_as_libprotobuf_c_reads_them),
        TEST(damaged_messages_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
