#include "echo_world.h"

#include "wire_client.h"

/* Replies of a run of short jobs leave in one write; none of them may wait for
 * a handler that takes its time. */

#define ROUNDS 20 /* not each meets the worker between two jobs */

static void
open_method(struct wire *wire, uint32_t stream, const char *method)
{
    struct header_open open = {.method = idem_bytes_of(method)};

    wire_open(wire, stream, &open, (struct idem_bytes){(const uint8_t *)"", 0});
}

/* The worker is kept until an Echo and a further Block wait behind it: the
 * Echo is over just before the Block begins, whose handler has no effect, so
 * that nothing is written before it. */
static void
a_reply_does_not_wait_for_the_next_handler(void **state)
{
    const struct echo_options options = {.server = {.workers = 1}};
    struct echo_world world;
    struct wire wire;
    uint32_t stream = 1;

    (void)state;
    echo_world_open(&world, &options);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    open_method(&wire, stream, ECHO_BLOCK_METHOD);
    for (unsigned i = 0; i < ROUNDS; i++) {
        echo_world_await_inside(&world, 1);
        open_method(&wire, stream + 1, ECHO_ECHO_METHOD);
        open_method(&wire, stream + 2, ECHO_BLOCK_METHOD);
        wire_ping(&wire);
        echo_world_let_one_out(&world);
        assert_int_equal(wire_end(&wire, stream).status, IDEM_OK);
        assert_int_equal(wire_end(&wire, stream + 1).status, IDEM_OK);
        stream += 2;
    }
    echo_world_open_gate(&world);
    assert_int_equal(wire_end(&wire, stream).status, IDEM_OK);
    wire_close(&wire);
    echo_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_does_not_wait_for_the_next_handler),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
