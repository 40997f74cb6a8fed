#include "support.h"

#include "frame.h"
#include "inbox.h"
#include "outbox.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

/* Frames: their heads, how bytes are cut into them, how they are put together.
 */

static void
a_head_is_read_as_it_was_written(void **state)
{
    uint8_t header[300] = {0}, payload[70000] = {0}, bytes[FRAME_HEAD];
    struct frame frame = {
        .type = FRAME_OPEN,
        .flags = FRAME_FLAG_LAST,
        .stream = 0x12345678,
        .header = {header, sizeof header},
        .payload = {payload, sizeof payload},
    };
    struct frame_head head;

    (void)state;
    frame_head_write(bytes, &frame);
    assert_int_equal(bytes[0], (70300 & 0xff));
    assert_int_equal(bytes[8], 0x78);
    assert_true(frame_head_read(bytes, &head));
    assert_int_equal(head.size, 70300);
    assert_int_equal(head.header, 300);
    assert_int_equal(head.type, FRAME_OPEN);
    assert_int_equal(head.flags, FRAME_FLAG_LAST);
    assert_int_equal(head.stream, 0x12345678);
}

static void
a_header_longer_than_its_frame_is_refused(void **state)
{
    uint8_t longer[FRAME_HEAD] = {4, 0, 0, 0, FRAME_END, 0, 5, 0, 1};
    uint8_t huge[FRAME_HEAD] = {0, 0, 1, 0, FRAME_END, 0, 1, 0x40, 1};
    struct frame_head head;

    (void)state;
    assert_false(frame_head_read(longer, &head));
    assert_false(frame_head_read(huge, &head));
}

/* --- The inbox --- */

struct sample {
    uint8_t *bytes;
    size_t size;
};

static void
append(struct sample *sample, uint8_t type, size_t header, size_t payload)
{
    uint8_t *fill = malloc(header + payload + 1);
    struct frame frame = {.type = type,
                          .stream = (uint32_t)payload,
                          .header = {fill, header},
                          .payload = {fill + header, payload}};

    assert_non_null(fill);
    for (size_t i = 0; i < header + payload; i++)
        fill[i] = (uint8_t)(i * 7 + type);
    sample->bytes =
        realloc(sample->bytes, sample->size + FRAME_HEAD + header + payload);
    assert_non_null(sample->bytes);
    frame_head_write(sample->bytes + sample->size, &frame);
    memcpy(sample->bytes + sample->size + FRAME_HEAD, fill, header + payload);
    sample->size += FRAME_HEAD + header + payload;
    free(fill);
}

static void
assert_filled(const struct frame *frame)
{
    for (size_t i = 0; i < frame->header.size; i++)
        assert_int_equal(frame->header.data[i], (uint8_t)(i * 7 + frame->type));
    for (size_t i = 0; i < frame->payload.size; i++)
        assert_int_equal(frame->payload.data[i],
                         (uint8_t)((i + frame->header.size) * 7 + frame->type));
}

/* Feed it in steps of that many bytes; count the frames and check them. */
static unsigned
feed(struct inbox *inbox, const struct sample *sample, size_t step,
     unsigned *oversize)
{
    struct frame frame;
    unsigned frames = 0;

    for (size_t at = 0; at < sample->size;) {
        size_t room, left = sample->size - at;
        uint8_t *space = inbox_space(inbox, &room);
        size_t size = step < left ? step : left;

        size = size < room ? size : room;
        assert_true(size > 0);
        memcpy(space, sample->bytes + at, size);
        inbox_filled(inbox, size);
        at += size;
        while (inbox_next(inbox, &frame) == INBOX_FRAME) {
            frames++;
            assert_int_equal(frame.stream, frame.payload.size);
            if (frame.oversize)
                ++*oversize;
            else
                assert_filled(&frame);
        }
    }
    return frames;
}

static void
frames_are_cut_however_the_bytes_arrive(void **state)
{
    static const size_t steps[] = {1, 5, 12, 4096, 65536, 1000000};
    struct sample sample = {0};

    (void)state;
    append(&sample, 2, 0, 0);
    append(&sample, 3, 10, 100);
    append(&sample, 4, 16384, 0);
    append(&sample, 5, 3, 65536);
    append(&sample, 6, 100, 300000);
    append(&sample, 7, 1, 1);
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct inbox inbox;
        unsigned oversize = 0;

        assert_true(inbox_init(&inbox, 1000000));
        assert_int_equal(feed(&inbox, &sample, steps[i], &oversize), 6);
        assert_int_equal(oversize, 0);
        inbox_fini(&inbox);
    }
    free(sample.bytes);
}

static void
a_message_over_the_limit_is_skipped_and_its_header_is_given(void **state)
{
    static const size_t steps[] = {1, 100, 65536};
    struct sample sample = {0};

    (void)state;
    append(&sample, 2, 5, 1000);
    append(&sample, 3, 5, 1001);
    append(&sample, 4, 5, 200000);
    append(&sample, 5, 5, 10);
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct inbox inbox;
        unsigned oversize = 0;

        assert_true(inbox_init(&inbox, 1000));
        assert_int_equal(feed(&inbox, &sample, steps[i], &oversize), 4);
        assert_int_equal(oversize, 2);
        assert_null(inbox.big);
        inbox_fini(&inbox);
    }
    free(sample.bytes);
}

static void
a_length_is_checked_before_memory_is_taken(void **state)
{
    /* 4 GiB - 1 of message: nothing is allocated for it. */
    uint8_t head[FRAME_HEAD] = {255, 255, 255, 255, FRAME_OPEN};
    struct inbox inbox;
    struct frame frame;
    size_t room;

    (void)state;
    assert_true(inbox_init(&inbox, 4 << 20));
    memcpy(inbox_space(&inbox, &room), head, sizeof head);
    inbox_filled(&inbox, sizeof head);
    assert_int_equal(inbox_next(&inbox, &frame), INBOX_FRAME);
    assert_true(frame.oversize);
    assert_null(inbox.big);
    assert_int_equal(inbox_next(&inbox, &frame), INBOX_MORE);
    inbox_fini(&inbox);
}

/* --- The outbox --- */

struct holds {
    unsigned retained, released;
};

static void
count_retain(void *with)
{
    ((struct holds *)with)->retained++;
}

static void
count_release(void *with)
{
    ((struct holds *)with)->released++;
}

static size_t
collect(struct outbox *outbox, uint8_t *bytes, unsigned room)
{
    struct idem_bytes parts[8];
    size_t size = 0;
    unsigned n;

    while ((n = outbox_parts(outbox, parts, room)) > 0)
        for (unsigned i = 0; i < n; i++) {
            assert_true(parts[i].size > 0);
            memcpy(bytes + size, parts[i].data, parts[i].size);
            size += parts[i].size;
        }
    return size;
}

static void
small_frames_are_gathered_and_big_messages_referred_to(void **state)
{
    static uint8_t big[50000], bytes[300000];
    uint8_t header[] = {1, 2, 3};
    struct outbox outbox;
    struct frame frame = {.type = FRAME_END, .header = {header, 3}};
    struct idem_bytes part;
    struct holds holds = {0};

    (void)state;
    memset(big, 9, sizeof big);
    outbox_init(&outbox);
    for (unsigned i = 0; i < 9; i++) {
        frame.stream = i + 1;
        frame.payload = (struct idem_bytes){big, i % 3 ? 100 : sizeof big};
        assert_true(outbox_append(
            &outbox, &frame,
            (struct outbox_hold){count_retain, count_release, &holds}));
        assert_int_equal(holds.retained, i / 3 + 1);
    }
    outbox_take_off(&outbox);
    assert_int_equal(outbox.filling.total, 0);
    assert_int_equal(outbox_parts(&outbox, &part, 1), 1);
    assert_int_equal(part.size, FRAME_HEAD + 3);
    outbox.flown = 0;
    assert_int_equal(collect(&outbox, bytes, 2), 9 * 15 + 6 * 100 + 3 * 50000);
    assert_int_equal(holds.released, 0);
    outbox_land(&outbox);
    assert_int_equal(holds.released, 3);
    outbox_fini(&outbox);
}

static void
what_never_took_off_was_never_written(void **state)
{
    struct outbox outbox;
    struct frame frame = {.type = FRAME_PING};
    uint64_t mark;

    (void)state;
    outbox_init(&outbox);
    assert_true(outbox_append(&outbox, &frame, (struct outbox_hold){0}));
    outbox_take_off(&outbox);
    mark = outbox.appended;
    assert_true(outbox_append(&outbox, &frame, (struct outbox_hold){0}));
    assert_true(mark >= outbox.taken_off);
    outbox_land(&outbox);
    outbox_take_off(&outbox);
    assert_true(mark < outbox.taken_off);
    outbox_grounded(&outbox);
    assert_true(mark >= outbox.taken_off);
    outbox_fini(&outbox);
}

/* --- The table of streams --- */

static void
streams_are_found_whatever_came_and_went(void **state)
{
    static char here[20000];
    struct streams streams = {0};
    uint32_t at = 0;
    uint32_t seed = 1, next = 1;

    (void)state;
    assert_null(streams_find(&streams, 5));
    for (unsigned round = 0; round < 20000; round++) {
        seed = seed * 1103515245 + 12345;
        if (next < sizeof here && (seed >> 16) % 3) {
            assert_true(streams_add(&streams, next, &here[next]));
            next++;
        } else {
            uint32_t id = 1 + (seed >> 8) % next;
            void *found = streams_find(&streams, id);

            assert_ptr_equal(streams_take(&streams, id), found);
            assert_null(streams_find(&streams, id));
        }
    }
    for (uint32_t id = 1; id < next; id++) {
        void *found = streams_find(&streams, id);

        assert_true(found == NULL || found == &here[id]);
    }
    while (streams_take_above(&streams, 0, &at))
        continue;
    assert_int_equal(streams.count, 0);
    streams_fini(&streams);
}

static void
streams_over_an_id_can_be_taken_out(void **state)
{
    static char here[100];
    struct streams streams = {0};
    uint32_t at = 0;
    unsigned taken = 0;

    (void)state;
    for (uint32_t id = 1; id < 100; id++)
        assert_true(streams_add(&streams, id, &here[id]));
    while (streams_take_above(&streams, 40, &at))
        taken++;
    assert_int_equal(taken, 59);
    for (uint32_t id = 1; id < 100; id++)
        assert_int_equal(streams_find(&streams, id) != NULL, id <= 40);
    streams_fini(&streams);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read_as_it_was_written),
        cmocka_unit_test(a_header_longer_than_its_frame_is_refused),
        cmocka_unit_test(frames_are_cut_however_the_bytes_arrive),
        cmocka_unit_test(
            a_message_over_the_limit_is_skipped_and_its_header_is_given),
        cmocka_unit_test(a_length_is_checked_before_memory_is_taken),
        cmocka_unit_test(
            small_frames_are_gathered_and_big_messages_referred_to),
        cmocka_unit_test(what_never_took_off_was_never_written),
        cmocka_unit_test(streams_are_found_whatever_came_and_went),
        cmocka_unit_test(streams_over_an_id_can_be_taken_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
