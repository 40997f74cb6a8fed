#include "support.h"

#include "arena.h"
#include "frame.h"
#include "header.h"

#include <idem/v1/wire.pb-c.h>

#include <stdlib.h>
#include <string.h>

/* The headers that are coded by hand, held against what protobuf-c makes of
 * idem/v1/wire.proto. */

static struct idem_bytes
text(const char *string)
{
    return idem_bytes_of(string);
}

static void
assert_text(struct idem_bytes bytes, const char *string)
{
    assert_int_equal(bytes.size, strlen(string));
    assert_memory_equal(bytes.data, string, bytes.size);
}

static struct idem_metadata
two_entries(struct idem_arena *arena)
{
    struct idem_metadata metadata = {0};

    assert_int_equal(
        idem_metadata_add(&metadata, arena, text("a"), text("1"), NULL),
        IDEM_OK);
    assert_int_equal(
        idem_metadata_add(&metadata, arena, text("b-bin"), text(""), NULL),
        IDEM_OK);
    return metadata;
}

static size_t
write_sample_open(uint8_t *bytes, struct idem_arena *arena)
{
    struct idem_metadata metadata = two_entries(arena);
    struct header_open open = {
        .method = text("pay.v1.Pay/Charge"),
        .method_id = 300,
        .has_timeout = true,
        .timeout_us = 123456789012,
        .key = text("order-17"),
        .attempt = 3,
        .streams = 2,
        .resume_token = text("row-9"),
        .resume_after = 70000,
    };

    return header_open_write(bytes, FRAME_HEADER_MAX, &open, &metadata);
}

static void
protobuf_reads_our_open(void **state)
{
    struct idem_arena *arena = arena_new(1024, 0);
    uint8_t bytes[FRAME_HEADER_MAX];
    size_t size = write_sample_open(bytes, arena);
    Idem__V1__OpenHeader *read =
        idem__v1__open_header__unpack(NULL, size, bytes);

    (void)state;
    assert_non_null(read);
    assert_string_equal(read->method, "pay.v1.Pay/Charge");
    assert_int_equal(read->method_id, 300);
    assert_int_equal(read->streams, 2);
    assert_int_equal(read->resume_token.len, 5);
    assert_memory_equal(read->resume_token.data, "row-9", 5);
    assert_int_equal(read->resume_after, 70000);
    assert_true(read->timeout_us == 123456789012);
    assert_string_equal(read->key, "order-17");
    assert_int_equal(read->attempt, 3);
    assert_int_equal(read->n_metadata, 2);
    assert_string_equal(read->metadata[1]->name, "b-bin");
    assert_int_equal(read->metadata[1]->value.len, 0);
    idem__v1__open_header__free_unpacked(read, NULL);
    arena_free(arena);
}

static void
we_read_our_own_open(void **state)
{
    struct idem_arena *arena = arena_new(1024, 0);
    uint8_t bytes[FRAME_HEADER_MAX];
    struct idem_bytes view = {bytes, write_sample_open(bytes, arena)};
    struct idem_metadata metadata = {0};
    struct header_open open;

    (void)state;
    assert_true(header_open_read(view, &open));
    assert_text(open.method, "pay.v1.Pay/Charge");
    assert_int_equal(open.method_id, 300);
    assert_true(open.has_timeout && open.timeout_us == 123456789012);
    assert_text(open.key, "order-17");
    assert_int_equal(open.attempt, 3);
    assert_int_equal(header_open_metadata(view, &metadata, arena, NULL),
                     IDEM_OK);
    assert_text(metadata.first->name, "a");
    assert_text(metadata.first->value, "1");
    assert_text(metadata.first->next->name, "b-bin");
    assert_null(metadata.first->next->next);
    arena_free(arena);
}

static void
a_timeout_of_nothing_is_not_the_same_as_none(void **state)
{
    uint8_t bytes[64];
    struct header_open open = {.has_timeout = true};
    struct idem_bytes view = {bytes, header_open_write(bytes, 64, &open, NULL)};

    (void)state;
    assert_true(header_open_read(view, &open));
    assert_true(open.has_timeout);
    assert_int_equal(open.timeout_us, 0);
    open = (struct header_open){0};
    view.size = header_open_write(bytes, 64, &open, NULL);
    assert_int_equal(view.size, 0);
    assert_true(header_open_read(view, &open));
    assert_false(open.has_timeout);
}

static size_t
write_sample_end(uint8_t *bytes, struct idem_arena *arena)
{
    struct idem_metadata trailers = two_entries(arena);
    struct header_end end = {
        .status = 9,
        .effect = 4,
        .final = true,
        .message = text("no"),
        .reason = text("KEY_EXPIRED"),
        .first_at_ms = 1700000000000,
        .has_retry_after = true,
        .retry_after_ms = 0,
        .server_time_ms = -1,
        .watermark = 72,
        .executions = 3,
    };

    return header_end_write(bytes, FRAME_HEADER_MAX, &end, &trailers);
}

static void
protobuf_and_we_read_our_end_alike(void **state)
{
    struct idem_arena *arena = arena_new(1024, 0);
    uint8_t bytes[FRAME_HEADER_MAX];
    struct idem_bytes view = {bytes, write_sample_end(bytes, arena)};
    Idem__V1__EndHeader *read =
        idem__v1__end_header__unpack(NULL, view.size, bytes);
    struct idem_metadata trailers = {0};
    struct header_end end;

    (void)state;
    assert_non_null(read);
    assert_true(header_end_read(view, &end));
    assert_int_equal(end.status, read->status);
    assert_int_equal(end.effect, read->effect);
    assert_int_equal(end.final, read->final);
    assert_text(end.message, read->message);
    assert_text(end.reason, read->reason);
    assert_true(end.first_at_ms == read->first_at_ms);
    assert_true(end.has_retry_after && end.retry_after_ms == 0);
    assert_true(end.server_time_ms == -1 && read->server_time_ms == -1);
    assert_int_equal(read->watermark, 72);
    assert_true(end.executions == 3 && read->executions == 3);
    assert_int_equal(read->n_trailers, 2);
    assert_int_equal(header_end_trailers(view, &trailers, arena, NULL),
                     IDEM_OK);
    assert_text(trailers.first->next->name, read->trailers[1]->name);
    idem__v1__end_header__free_unpacked(read, NULL);
    arena_free(arena);
}

static void
settings_goaway_and_window_go_round(void **state)
{
    uint8_t bytes[128];
    struct idem_bytes view = {bytes, 0};
    struct header_settings settings = {1,          1000, 2000, 3000,
                                       text("me"), 4000, 6};
    struct header_goaway goaway = {77, text("drain")};
    struct header_window window = {5000, 70};
    struct header_message message = {idem_bytes_of("at 7"), 71};

    (void)state;
    view.size = header_settings_write(bytes, sizeof bytes, &settings);
    assert_true(header_settings_read(view, &settings));
    assert_int_equal(settings.version, 1);
    assert_int_equal(settings.max_message, 1000);
    assert_int_equal(settings.max_streams, 2000);
    assert_int_equal(settings.time_ms, 3000);
    assert_text(settings.identity, "me");
    assert_int_equal(settings.stream_window, 4000);
    assert_int_equal(settings.codecs, 6);
    view.size = header_goaway_write(bytes, sizeof bytes, &goaway);
    assert_true(header_goaway_read(view, &goaway));
    assert_int_equal(goaway.last_stream, 77);
    assert_text(goaway.reason, "drain");
    view.size = header_window_write(bytes, sizeof bytes, &window);
    assert_true(header_window_read(view, &window));
    assert_int_equal(window.credit, 5000);
    assert_int_equal(window.watermark, 70);
    view.size = header_message_write(bytes, sizeof bytes, &message);
    assert_true(header_message_read(view, &message));
    assert_true(idem_bytes_equal(message.token, idem_bytes_of("at 7")));
    assert_int_equal(message.ack_below, 71);
}

/* What a frame has room for is what the header takes, not the longest numbers
 * that there are. */
static void
a_header_is_written_into_just_its_room(void **state)
{
    uint8_t wide[128], *tight;
    struct header_goaway goaway = {
        UINT32_MAX,
        text("MESSAGE of stream 4294967295, which was never opened")};
    struct header_window window = {UINT32_MAX, INT64_MAX};
    size_t size = header_goaway_write(wide, sizeof wide, &goaway);

    (void)state;
    tight = malloc(size);
    assert_non_null(tight);
    assert_int_equal(header_goaway_write(tight, size, &goaway), size);
    assert_memory_equal(tight, wide, size);
    free(tight);
    size = header_window_write(wide, sizeof wide, &window);
    tight = malloc(size);
    assert_non_null(tight);
    assert_int_equal(header_window_write(tight, size, &window), size);
    assert_memory_equal(tight, wide, size);
    free(tight);
}

/* An exact copy, so that one byte too far is seen. */
static bool
reads(struct idem_bytes view, size_t size, bool end)
{
    struct header_open open;
    struct header_end close;
    uint8_t *copy = malloc(size ? size : 1);
    struct idem_bytes cut = {copy, size};
    bool is_fine;

    assert_non_null(copy);
    memcpy(copy, view.data, size);
    is_fine = end ? header_end_read(cut, &close) : header_open_read(cut, &open);
    free(copy);
    return is_fine;
}

static void
every_truncation_is_refused_or_whole(void **state)
{
    struct idem_arena *arena = arena_new(1024, 0);
    uint8_t bytes[FRAME_HEADER_MAX];
    struct idem_bytes open = {bytes, write_sample_open(bytes, arena)};
    unsigned whole = 0;

    (void)state;
    for (size_t size = 0; size < open.size; size++)
        whole += reads(open, size, false);
    assert_int_equal(whole, 10); /* between two of the ten fields */
    open.size = write_sample_end(bytes, arena);
    whole = 0;
    for (size_t size = 0; size < open.size; size++)
        whole += reads(open, size, true);
    assert_int_equal(whole, 12);
    arena_free(arena);
}

static void
no_byte_that_is_changed_makes_a_crash(void **state)
{
    struct idem_arena *arena = arena_new(1024, 0);
    uint8_t bytes[FRAME_HEADER_MAX];
    struct idem_bytes view = {bytes, write_sample_open(bytes, arena)};

    (void)state;
    for (size_t at = 0; at < view.size; at++)
        for (unsigned value = 0; value < 256; value += 5) {
            uint8_t was = bytes[at];
            struct idem_metadata metadata = {0};
            enum idem_status status;

            bytes[at] = (uint8_t)value;
            (void)reads(view, view.size, false);
            (void)reads(view, view.size, true);
            status = header_open_metadata(view, &metadata, arena, NULL);
            assert_true(status == IDEM_OK || status == IDEM_INTERNAL ||
                        status == IDEM_RESOURCE_EXHAUSTED);
            bytes[at] = was;
        }
    arena_free(arena);
}

static void
unknown_fields_are_skipped(void **state)
{
    static const uint8_t bytes[] = {
        0xF8, 0x01, 0x05,                      /* 31, varint */
        0xF9, 0x01, 1,    2, 3, 4, 5, 6, 7, 8, /* 31, fixed64 */
        0xFD, 0x01, 1,    2, 3, 4,             /* 31, fixed32 */
        0xFA, 0x01, 0x02, 9, 9,                /* 31, bytes */
        0x12, 0x01, 'x',                       /* method_id, of another type */
        0x28, 0x02,                            /* attempt */
    };
    struct header_open open;

    (void)state;
    assert_true(
        header_open_read((struct idem_bytes){bytes, sizeof bytes}, &open));
    assert_int_equal(open.attempt, 2);
    assert_int_equal(open.method_id, 0);
}

/* rpc 81 */
static void
what_is_no_protobuf_is_refused(void **state)
{
    static const uint8_t zero[] = {0x00, 0x00};
    static const uint8_t group[] = {0x0B};
    static const uint8_t longer[] = {0x0A, 0x05, 'a'};
    static const uint8_t endless[] = {0x10, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                      0xFF, 0xFF, 0xFF, 0xFF, 0x02};
    struct header_open open;

    (void)state;
    assert_false(header_open_read((struct idem_bytes){zero, 2}, &open));
    assert_false(header_open_read((struct idem_bytes){group, 1}, &open));
    assert_false(header_open_read((struct idem_bytes){longer, 3}, &open));
    assert_false(header_open_read((struct idem_bytes){endless, 11}, &open));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(protobuf_reads_our_open),
        cmocka_unit_test(we_read_our_own_open),
        cmocka_unit_test(a_timeout_of_nothing_is_not_the_same_as_none),
        cmocka_unit_test(protobuf_and_we_read_our_end_alike),
        cmocka_unit_test(settings_goaway_and_window_go_round),
        cmocka_unit_test(a_header_is_written_into_just_its_room),
        cmocka_unit_test(every_truncation_is_refused_or_whole),
        cmocka_unit_test(no_byte_that_is_changed_makes_a_crash),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(what_is_no_protobuf_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
