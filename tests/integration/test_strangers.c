/* What a server does with strangers: who speaks another language, breaks the
 * law, comes too often or goes in mid-frame. */
#include "server_story.h"

#include "fake_clock.h"
#include "server.h"

#include <idem/call.h>

#include <string.h>

/* --- Strangers --- */

/* B105: HTTP, noise, half a hello, SP, nothing; all at once. */
static void
junk_peers_do_not_disturb_others_and_are_closed(void **state)
{
    static const char *const junk[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "IDEM\x02\x00\x00\x00 from the future",
        "IDE",
        "",
    };
    struct echo_options options = {.server = {.hello_timeout_ms = 100}};
    struct echo_world world;
    struct wire wires[50];

    (void)state;
    echo_world_open(&world, &options);
    for (unsigned i = 0; i < 50; i++) {
        const char *text = junk[i % 5];

        wire_connect(&wires[i], world.address);
        wire_write(&wires[i], text, strlen(text));
        if (i == 10)
            assert_works(&world);
    }
    assert_works(&world);
    for (unsigned i = 0; i < 50; i++) {
        wire_await_close(&wires[i]);
        wire_close(&wires[i]);
    }
    assert_works(&world);
    echo_world_close(&world);
}

static void
half_open_connections_are_bounded(void **state)
{
    struct echo_options options = {.server = {.max_connections = 8}};
    struct echo_world world;
    struct wire wires[6];

    (void)state;
    echo_world_open(&world, &options);
    assert_works(&world);
    for (unsigned i = 0; i < 6; i++)
        wire_connect(&wires[i], world.address);
    wire_await_close(&wires[0]); /* the oldest makes room */
    assert_works(&world);
    for (unsigned i = 0; i < 6; i++)
        wire_close(&wires[i]);
    echo_world_close(&world);
}

static void
connections_are_bounded(void **state)
{
    struct echo_options options = {.server = {.max_connections = 2}};
    struct echo_world world;
    struct wire second, third;

    (void)state;
    echo_world_open(&world, &options);
    assert_works(&world);
    wire_connect(&second, world.address);
    wire_hello(&second, 0);
    wire_connect(&third, world.address);
    wire_await_close(&third);
    wire_ping(&second);
    wire_close(&third);
    wire_close(&second);
    assert_works(&world);
    echo_world_close(&world);
}

/* What breaks the law ends the connection, and only that one. */
static void
assert_closes(struct echo_world *world, const struct frame *frame, bool hello)
{
    struct wire wire;

    wire_connect(&wire, world->address);
    if (hello) {
        wire_hello(&wire, 0);
    } else {
        uint8_t preface[FRAME_PREFACE];

        frame_preface_write(preface);
        wire_write(&wire, preface, sizeof preface);
    }
    wire_send(&wire, frame);
    wire_await_close(&wire);
    wire_close(&wire);
    assert_works(world);
}

static void
a_peer_that_breaks_the_law_is_closed(void **state)
{
    static uint8_t bytes[100] = {0xFF, 0xFF, 0xFF};
    struct echo_world world;
    struct frame early = {.type = FRAME_PING};
    struct frame no_stream = {.type = FRAME_OPEN, .stream = 0};
    struct frame long_ping = {.type = FRAME_PING, .payload = {bytes, 100}};
    struct frame settings = {.type = FRAME_SETTINGS, .header = {bytes, 3}};
    uint8_t head[FRAME_HEAD] = {1, 0, 0, 0, FRAME_OPEN, 0, 200, 0, 1};
    struct wire wire;

    (void)state;
    echo_world_open(&world, NULL);
    assert_closes(&world, &early, false);
    assert_closes(&world, &settings, false);
    assert_closes(&world, &no_stream, true);
    assert_closes(&world, &long_ping, true);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    wire_write(&wire, head, sizeof head);
    wire_await_close(&wire);
    wire_close(&wire);
    assert_works(&world);
    echo_world_close(&world);
}

static void
frames_of_the_future_are_skipped(void **state)
{
    static uint8_t bytes[100];
    struct echo_world world;
    struct frame frame = {.type = 77, .stream = 3, .payload = {bytes, 100}};
    struct frame later = {.type = 250, .stream = 3};
    struct frame twice = {.type = FRAME_SETTINGS};
    struct wire wire;

    (void)state;
    echo_world_open(&world, NULL);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    wire_send(&wire, &frame);
    wire_send(&wire, &later);
    wire_send(&wire, &twice);
    wire_ping(&wire);
    wire_close(&wire);
    echo_world_close(&world);
}

/* Half a frame, then nothing, or the end. */
static void
a_connection_that_drops_in_mid_frame_harms_nobody(void **state)
{
    static uint8_t body[1000];
    struct echo_world world;
    struct wire wire;
    uint8_t head[FRAME_HEAD];
    struct frame frame = {
        .type = FRAME_OPEN, .stream = 1, .payload = {body, sizeof body}};

    (void)state;
    echo_world_open(&world, NULL);
    frame_head_write(head, &frame);
    for (unsigned i = 0; i < FRAME_HEAD + 20; i += 3) {
        wire_connect(&wire, world.address);
        wire_hello(&wire, 0);
        wire_write(&wire, head, i < FRAME_HEAD ? i : FRAME_HEAD);
        wire_write(&wire, body, i < FRAME_HEAD ? 0 : i - FRAME_HEAD);
        wire_close(&wire);
    }
    assert_works(&world);
    echo_world_close(&world);
}

#define TEST(name) cmocka_unit_test(name)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(junk_peers_do_not_disturb_others_and_are_closed),
        TEST(half_open_connections_are_bounded),
        TEST(connections_are_bounded),
        TEST(a_peer_that_breaks_the_law_is_closed),
        TEST(frames_of_the_future_are_skipped),
        TEST(a_connection_that_drops_in_mid_frame_harms_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
