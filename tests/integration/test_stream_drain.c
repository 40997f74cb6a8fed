/* Streams that are under way while their server goes, or its TLS changes: what
 * was begun comes to its end, and whoever waits for credit hears of it (rpc 95,
 * 97). */
#include "flow_world.h"

#include "tls_world.h"

#include <pthread.h>
#include <string.h>

#define WINDOW 65536
#define SIZE 1000
#define FIT (WINDOW / (SIZE + 64) + 1) /* notes that go without a reader */
#define HALF_CLOSED (FIT + FIT / 2)    /* more than fit one way */
#define MANY (10 * FIT)                /* more than fit both ways */

static struct flow_world world;

static void
open_flow(const struct flow_options *given)
{
    struct flow_options options = *given;

    options.server.stream_window = options.channel.stream_window = WINDOW;
    flow_world_open(&world, &options);
}

static int
up(void **state)
{
    (void)state;
    open_flow(&(struct flow_options){0});
    return 0;
}

static int
down(void **state)
{
    (void)state;
    flow_world_close(&world);
    return 0;
}

/* Writes until it may not any more. */
struct writer {
    pthread_t thread;
    struct flow_chat_stream *stream;
    enum idem_status status; /* of the last one */
};

static void *
write_many(void *with)
{
    struct writer *writer = with;

    for (uint64_t i = 1; i <= MANY && writer->status == IDEM_OK; i++)
        writer->status = flow_chat_write(writer->stream, flow_note_of(i, SIZE));
    flow_chat_end(writer->stream);
    return NULL;
}

/* Nobody reads what comes back: its handler is stuck, and so is it. */
static void
begin_stuck(struct writer *writer)
{
    *writer = (struct writer){.stream = flow_chat_open(world.channel, NULL)};
    assert_int_equal(pthread_create(&writer->thread, NULL, write_many, writer),
                     0);
    flow_world_await(&world, &world.sent, FIT);
}

static void
assert_notes(struct flow_chat_stream *stream, uint64_t last)
{
    for (uint64_t i = 1; i <= last; i++)
        assert_note(flow_chat_next(stream), i, SIZE);
    assert_null(flow_chat_next(stream));
}

static void
a_writer_without_credit_goes_on_after_goaway(void **state)
{
    struct writer writer;

    (void)state;
    begin_stuck(&writer);
    idem_server_drain(world.server);
    assert_notes(writer.stream, MANY);
    pthread_join(writer.thread, NULL);
    assert_int_equal(writer.status, IDEM_OK);
    assert_int_equal(flow_chat_finish(writer.stream, NULL), IDEM_OK);
}

static void
a_writer_without_credit_hears_of_the_stop(void **state)
{
    struct writer writer;
    struct idem_outcome outcome;

    (void)state;
    flow_world_close(&world);
    open_flow(&(struct flow_options){.server = {.drain_ms = 1}});
    begin_stuck(&writer);
    idem_server_stop(world.server);
    pthread_join(writer.thread, NULL);
    assert_int_equal(writer.status, IDEM_UNAVAILABLE);
    assert_int_equal(flow_chat_finish(writer.stream, &outcome),
                     IDEM_UNAVAILABLE);
    flow_world_await(&world, &world.given_up, 1);
}

static void
a_half_closed_stream_is_read_to_its_end_while_its_server_drains(void **state)
{
    struct flow_chat_stream *stream = flow_chat_open(world.channel, NULL);

    (void)state;
    for (uint64_t i = 1; i <= HALF_CLOSED; i++)
        assert_int_equal(flow_chat_write(stream, flow_note_of(i, SIZE)),
                         IDEM_OK);
    flow_chat_end(stream);
    flow_world_await(&world, &world.sent, FIT);
    idem_server_drain(world.server);
    assert_notes(stream, HALF_CLOSED);
    assert_int_equal(flow_chat_finish(stream, NULL), IDEM_OK);
}

/* The next connection sees the new certificate; a stream keeps its own. */
static void
a_stream_goes_on_when_its_servers_certificate_changes(void **state)
{
    struct flow_chat_stream *stream;
    struct tls_world tls;

    (void)state;
    flow_world_close(&world);
    tls_world_open(&tls);
    open_flow(&(struct flow_options){.address = "tls+tcp://127.0.0.1:0",
                                     .server.tls = &tls.server,
                                     .channel.tls = &tls.client});
    stream = flow_chat_open(world.channel, NULL);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(flow_chat_write(stream, flow_note_of(i, SIZE)),
                         IDEM_OK);
        assert_note(flow_chat_next(stream), i, SIZE);
        tls_world_issue_server(
            &tls, &(struct certificate_order){.names = "DNS:new.test"});
        tls_world_await_reloads(&tls, (unsigned)i, 0);
    }
    assert_int_equal(flow_chat_finish(stream, NULL), IDEM_OK);
    flow_world_close(&world);
    tls_world_close(&tls);
    open_flow(&(struct flow_options){0});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_writer_without_credit_goes_on_after_goaway),
        TEST(a_writer_without_credit_hears_of_the_stop),
        TEST(a_half_closed_stream_is_read_to_its_end_while_its_server_drains),
        TEST(a_stream_goes_on_when_its_servers_certificate_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
