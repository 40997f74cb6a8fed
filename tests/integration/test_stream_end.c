/* After END nothing more is said about its stream (docs/wire.md, 4), whoever
 * reads or writes it when its peer breaks a rule. */
#include "support.h"

#include "server.h"
#include "wire_client.h"

#include <idem/call.h>
#include <idem/interceptor.h>
#include <idem/server.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "flow.idem.h"

#define WINDOW 1000

/* A place where one thread stops until another has seen it there. */
struct gate {
    sem_t reached, open;
};

/* A server of SumAsync, in whose chain a message and an answer are held up. */
struct world {
    struct idem_interceptor holding;
    struct idem_server *server;
    struct wire wire;
    struct gate message;  /* the second one, on its way to the handler */
    struct gate withdraw; /* the answer is taken back from its holder */
    struct flow_sum_async_server_stream *stream;
    atomic_bool takes; /* messages */
    sem_t began, refused;
};

static struct world world;

/* --- What is held up --- */

static void
gate_init(struct gate *gate)
{
    assert_int_equal(sem_init(&gate->reached, 0, 0), 0);
    assert_int_equal(sem_init(&gate->open, 0, 0), 0);
}

static void
gate_fini(struct gate *gate)
{
    sem_destroy(&gate->reached);
    sem_destroy(&gate->open);
}

static void
gate_pass(struct gate *gate)
{
    sem_post(&gate->reached);
    sem_wait(&gate->open);
}

static enum idem_status
hold_message(struct idem_interceptor *self, struct idem_call *call,
             struct idem_stream_message *message, struct idem_error *err)
{
    (void)self;
    (void)call;
    (void)err;
    if (message->number == 2)
        gate_pass(&world.message);
    return IDEM_OK;
}

static bool
withdraw(struct idem_call *call, void *with)
{
    (void)call;
    (void)with;
    gate_pass(&world.withdraw);
    return true;
}

static enum idem_step
hold_answer(struct idem_interceptor *self, struct idem_call *call)
{
    static const struct idem_holder holder = {.withdraw = withdraw};

    (void)self;
    return idem_call_keep(call, &holder, NULL) ? IDEM_WAIT : IDEM_NEXT;
}

static void
no_free(struct idem_interceptor *self)
{
    (void)self;
}

static const struct idem_interceptor_ops holding_ops = {
    .name = "holding",
    .band = IDEM_BAND_OBSERVE,
    .reply = hold_answer,
    .message = hold_message,
    .free = no_free,
};

/* --- Its handler --- */

static bool
take_note(struct flow_sum_async_server_stream *stream, const flow_note *note)
{
    (void)stream;
    (void)note;
    if (!atomic_load(&world.takes))
        sem_post(&world.refused);
    return atomic_load(&world.takes);
}

static enum idem_status
sum_async(struct idem_context *context,
          struct flow_sum_async_server_stream *stream, flow_sum_reply *reply)
{
    static const struct flow_sum_async_server_callbacks callbacks = {
        .message = take_note};

    (void)context;
    (void)reply;
    world.stream = stream;
    flow_sum_async_serve(stream, &callbacks, NULL);
    sem_post(&world.began);
    return IDEM_OK;
}

static int
up(void **state)
{
    static const struct flow_handlers handlers = {.sum_async = sum_async};
    const struct idem_server_options options = {.stream_window = WINDOW};

    (void)state;
    world = (struct world){.holding = {.ops = &holding_ops}};
    gate_init(&world.message);
    gate_init(&world.withdraw);
    assert_int_equal(sem_init(&world.began, 0, 0), 0);
    assert_int_equal(sem_init(&world.refused, 0, 0), 0);
    assert_int_equal(idem_server_new(&world.server, &options, NULL), IDEM_OK);
    assert_int_equal(idem_server_add(world.server, &world.holding, NULL),
                     IDEM_OK);
    assert_int_equal(flow_register(world.server, &handlers, NULL, NULL),
                     IDEM_OK);
    assert_int_equal(
        idem_server_listen(world.server, "tcp://127.0.0.1:0", NULL), IDEM_OK);
    assert_int_equal(idem_server_start(world.server, NULL), IDEM_OK);
    wire_connect(&world.wire, idem_server_address(world.server, 0));
    world.wire.stream_window = WINDOW;
    (void)wire_hello(&world.wire, 0);
    return 0;
}

static int
down(void **state)
{
    (void)state;
    wire_close(&world.wire);
    idem_server_free(world.server);
    sem_destroy(&world.refused);
    sem_destroy(&world.began);
    gate_fini(&world.withdraw);
    gate_fini(&world.message);
    return 0;
}

/* --- Its peer --- */

static void
send_note(size_t size)
{
    static const uint8_t body[WINDOW];
    uint8_t note[WINDOW] = {0x12, (uint8_t)(0x80 | ((size - 3) & 0x7f)),
                            (uint8_t)((size - 3) >> 7)};

    assert_true(size <= sizeof body);
    wire_send(&world.wire, &(struct frame){.type = FRAME_MESSAGE,
                                           .flags = FRAME_FLAG_MESSAGE,
                                           .stream = 1,
                                           .payload = {note, size}});
}

static void
open_with_two_messages(void)
{
    const struct header_open open = {.method =
                                         idem_bytes_of(FLOW_SUM_ASYNC_METHOD),
                                     .streams = IDEM_STREAMS_CLIENT};

    wire_open_stream(&world.wire, 1, &open, (struct idem_bytes){0});
    sem_wait(&world.began);
    send_note(10);
    sem_wait(&world.refused);
    send_note(WINDOW * 6 / 10); /* so much is given back at once */
    wire_ping(&world.wire);
}

/* A message that says nothing. */
static void
break_a_rule(void)
{
    wire_send(&world.wire, &(struct frame){.type = FRAME_MESSAGE, .stream = 1});
}

static void
assert_nothing_after_end(void)
{
    const struct frame ping = {.type = FRAME_PING};
    struct frame frame;

    assert_int_equal(wire_end(&world.wire, 1).status, IDEM_INTERNAL);
    wire_send(&world.wire, &ping);
    assert_true(wire_next(&world.wire, &frame));
    assert_int_equal(frame.type, FRAME_PONG);
}

static void *
read_on(void *with)
{
    atomic_store(&world.takes, true);
    flow_sum_async_server_resume(world.stream);
    return with;
}

/* Its reader is at the second message, its answer on its way up the chain, when
 * the rule is broken: the credit of that message comes before END or not at
 * all. */
static void
no_credit_comes_behind_the_end_of_a_breach(void **state)
{
    pthread_t reader;

    (void)state;
    open_with_two_messages();
    assert_int_equal(pthread_create(&reader, NULL, read_on, NULL), 0);
    sem_wait(&world.message.reached);
    flow_sum_async_close(world.stream, IDEM_OK);
    break_a_rule();
    sem_wait(&world.withdraw.reached);
    sem_post(&world.message.open);
    assert_int_equal(pthread_join(reader, NULL), 0);
    sem_post(&world.withdraw.open);
    assert_nothing_after_end();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            no_credit_comes_behind_the_end_of_a_breach, up, down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
