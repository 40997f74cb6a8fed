#include "support.h"

#include "echo.idem.h"
#include "fake_clock.h"
#include "loopback.h"
#include "wire_client.h"

#include <idem/call.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A channel whose server is of somebody else's making, or broken: the test is
 * that server, byte by byte. The channel's time is the test's, too. */

#define TIMEOUT_MS 200

struct strange {
    struct fake_clock clock;
    int listener;
    struct idem_channel *channel;
    struct wire wire;
    pthread_t thread;
    size_t size; /* of the request's body */
    struct idem_outcome outcome;
};

static void *
call(void *with)
{
    struct strange *strange = with;
    const struct idem_call_options options = {.timeout_ms = TIMEOUT_MS,
                                              .wait_for_ready = true};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    request.body.len = strange->size;
    request.body.data = calloc(1, strange->size + 1);
    echo_echo(strange->channel, &request, NULL, &options, &strange->outcome);
    free(request.body.data);
    return NULL;
}

/* A call is under way to a server that has said hello. */
static void
begin(struct strange *strange, size_t size)
{
    const struct idem_channel_options options = {.clock =
                                                     &strange->clock.clock};
    struct idem_error err;
    char target[64];
    unsigned port;

    memset(strange, 0, sizeof *strange);
    fake_clock_init(&strange->clock);
    strange->listener = loopback_listen(&port);
    strange->size = size;
    snprintf(target, sizeof target, "tcp://127.0.0.1:%u", port);
    assert_int_equal(
        idem_channel_new(&strange->channel, target, &options, &err), IDEM_OK);
    pthread_create(&strange->thread, NULL, call, strange);
    wire_accept(&strange->wire, strange->listener);
    wire_hello(&strange->wire, 0);
}

static void
await_outcome(struct strange *strange, enum idem_status status,
              enum idem_effect effect)
{
    pthread_join(strange->thread, NULL);
    if (strange->outcome.status != status || strange->outcome.effect != effect)
        print_error("%s\n", strange->outcome.message);
    assert_int_equal(strange->outcome.status, status);
    assert_int_equal(strange->outcome.effect, effect);
    assert_int_equal(strange->outcome.attempts, 1);
}

static void
end(struct strange *strange)
{
    wire_close(&strange->wire);
    idem_channel_close(strange->channel);
    close(strange->listener);
    fake_clock_fini(&strange->clock);
}

static const struct idem_bytes nothing = {(const uint8_t *)"", 0};

/* rpc 66: a status that nobody knows is UNKNOWN, with the server's words. */
static void
a_status_of_the_future_is_unknown(void **state)
{
    const struct header_end answer = {.status = 300,
                                      .effect = IDEM_EFFECT_ROLLED_BACK,
                                      .message = idem_bytes_of("of 2040")};
    struct strange strange;

    (void)state;
    begin(&strange, 1);
    wire_answer(&strange.wire, wire_await_open(&strange.wire), &answer,
                nothing);
    await_outcome(&strange, IDEM_UNKNOWN, IDEM_EFFECT_ROLLED_BACK);
    assert_string_equal(strange.outcome.message, "of 2040");
    end(&strange);
}

/* rpc 85: the status is kept, the bytes that are no UTF-8 are not. */
static void
words_that_are_no_utf8_are_repaired(void **state)
{
    const struct header_end answer = {
        .status = IDEM_NOT_FOUND,
        .effect = IDEM_EFFECT_ROLLED_BACK,
        .message = idem_bytes_of("no caf\xC3\xA9 \xFF here"),
        .reason = idem_bytes_of("NO\xFFNE")};
    struct strange strange;

    (void)state;
    begin(&strange, 1);
    wire_answer(&strange.wire, wire_await_open(&strange.wire), &answer,
                nothing);
    await_outcome(&strange, IDEM_NOT_FOUND, IDEM_EFFECT_ROLLED_BACK);
    assert_string_equal(strange.outcome.message, "no caf\xC3\xA9 ? here");
    assert_string_equal(strange.outcome.reason, "NO?NE");
    end(&strange);
}

/* An END came from a server, whatever it says: it was sent. */
static void
an_effect_that_cannot_be_is_in_doubt(void **state)
{
    static const uint32_t effects[] = {IDEM_EFFECT_NOT_SENT, 99};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const struct header_end answer = {.status = IDEM_UNAVAILABLE,
                                          .effect = effects[i]};
        struct strange strange;

        begin(&strange, 1);
        wire_answer(&strange.wire, wire_await_open(&strange.wire), &answer,
                    nothing);
        await_outcome(&strange, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
        end(&strange);
    }
}

static void
an_answer_that_cannot_be_read_is_in_doubt(void **state)
{
    static const uint8_t garbage[] = {0xFF, 0xFF, 0xFF};
    struct frame frame = {.type = FRAME_END,
                          .flags = FRAME_FLAG_LAST,
                          .header = {garbage, sizeof garbage}};
    struct strange strange;

    (void)state;
    begin(&strange, 1);
    frame.stream = wire_await_open(&strange.wire);
    wire_send(&strange.wire, &frame);
    await_outcome(&strange, IDEM_INTERNAL, IDEM_EFFECT_IN_DOUBT);
    end(&strange);
}

/* rpc 74: a peer that does not read any more, its buffers full: the request
 * cannot leave, and the deadline holds. */
static void
a_peer_that_does_not_read_does_not_stop_the_deadline(void **state)
{
    struct strange strange;
    int64_t at_ns;
    char first;

    (void)state;
    begin(&strange, 4000000);
    at_ns = strange.clock.clock.monotonic_ns(&strange.clock.clock) +
            TIMEOUT_MS * INT64_C(1000000);
    assert_int_equal(recv(strange.wire.fd, &first, 1, MSG_PEEK), 1);
    fake_clock_await_waiter(&strange.clock, at_ns);
    fake_clock_advance_ms(&strange.clock, TIMEOUT_MS);
    await_outcome(&strange, IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT);
    end(&strange);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_of_the_future_is_unknown),
        cmocka_unit_test(words_that_are_no_utf8_are_repaired),
        cmocka_unit_test(an_effect_that_cannot_be_is_in_doubt),
        cmocka_unit_test(an_answer_that_cannot_be_read_is_in_doubt),
        cmocka_unit_test(a_peer_that_does_not_read_does_not_stop_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
