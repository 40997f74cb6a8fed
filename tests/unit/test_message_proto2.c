/* What proto2 asks of who reads a message: fields that must be there. */
#include "support.h"

#include "arena.h"
#include "message.h"
#include "wire_bytes.h"

#include <string.h>

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

static enum idem_status
unpack_form(struct idem_arena *arena, struct idem_bytes bytes,
            Shapes__Old__Form **form, struct idem_error *err)
{
    struct ProtobufCMessage *message = NULL;
    enum idem_status status = idem_message_unpack(
        &shapes__old__form__descriptor, bytes, NULL, arena, &message, err);

    *form = (Shapes__Old__Form *)message;
    return status;
}

/* Case B087 */
static void
a_missing_required_field_is_refused_and_named(void **state)
{
    struct wire_bytes w = {.size = 0}, part = {.size = 0};
    Shapes__Old__Form *form;
    struct idem_error err;

    assert_int_equal(unpack_form(*state, wire_view(&w), &form, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "shapes.old.Form.id"));
    wire_text(&w, 1, "7");
    wire_nested(&w, 2, &part);
    assert_int_equal(unpack_form(*state, wire_view(&w), &form, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "shapes.old.Part.name"));
}

/* Case B087: cut at every length, on the heap, so that what is freed half way
 * is seen. */
static void
a_body_that_is_cut_anywhere_is_refused_or_valid(void **state)
{
    struct wire_bytes w = {.size = 0}, part = {.size = 0};

    (void)state;
    wire_text(&part, 1, "part");
    wire_text(&w, 1, "first");
    wire_text(&w, 1, "last");
    wire_text(&w, 3, "note");
    wire_text(&w, 3, "other note");
    wire_text(&w, 4, "blob");
    wire_text(&w, 4, "longer blob");
    wire_nested(&w, 2, &part);
    for (unsigned i = 0; i < 6; i++)
        wire_nested(&w, 6, &part);
    wire_text(&w, 99, "unknown");
    for (size_t size = 0; size <= w.size; size++) {
        struct ProtobufCMessage *message;
        enum idem_status status = message_unpack_heap(
            &shapes__old__form__descriptor, (struct idem_bytes){w.data, size},
            NULL, &message, NULL);

        if (size == w.size)
            assert_int_equal(status, IDEM_OK);
        if (status == IDEM_OK)
            protobuf_c_message_free_unpacked(message, NULL);
        else
            assert_int_equal(status, IDEM_INVALID_ARGUMENT);
    }
}

static void
defaults_of_proto2_are_there_until_set(void **state)
{
    struct wire_bytes w = {.size = 0}, part = {.size = 0};
    Shapes__Old__Form *form;

    wire_text(&part, 1, "p");
    wire_text(&w, 1, "7");
    wire_nested(&w, 2, &part);
    assert_int_equal(unpack_form(*state, wire_view(&w), &form, NULL), IDEM_OK);
    assert_int_equal(form->has_count, 0);
    assert_int_equal(form->count, 3);
    assert_string_equal(form->note, "none");
    assert_int_equal(form->part->count, 7);
    wire_number(&w, 5, 3);
    wire_text(&w, 4, "");
    assert_int_equal(unpack_form(*state, wire_view(&w), &form, NULL), IDEM_OK);
    assert_int_equal(form->has_count, 1);
    assert_int_equal(form->has_blob, 1);
    assert_int_equal(form->blob.len, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_missing_required_field_is_refused_and_named),
        TEST(defaults_of_proto2_are_there_until_set),
        TEST(a_body_that_is_cut_anywhere_is_refused_or_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
