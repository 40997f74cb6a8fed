/* A stream that fails before anything of it came is begun again, with all that
 * was written; afterwards it is not. The numbers are those of rpc.md. */
#include "flow_world.h"

#include <idem/policy.h>

#include <string.h>

static struct flow_world world;
static unsigned passed_out, passed_in; /* by the channel's hook */
static const char *refused;            /* what the hook refuses */

/* --- An interceptor that sees each message --- */

static enum idem_status
note_message(struct idem_interceptor *self, struct idem_call *call,
             struct idem_stream_message *message, struct idem_error *err)
{
    (void)self;
    (void)call;
    if (message->sent)
        assert_int_equal(message->number, ++passed_out);
    else
        assert_int_equal(message->number, ++passed_in);
    if (refused && !message->sent)
        return idem_fail(err, IDEM_PERMISSION_DENIED, "%s", refused);
    return IDEM_OK;
}

static void
no_free(struct idem_interceptor *self)
{
    (void)self;
}

static const struct idem_interceptor_ops noting_ops = {
    .name = "noting",
    .band = IDEM_BAND_OBSERVE,
    .message = note_message,
    .free = no_free,
};

static struct idem_interceptor noting;

static void
open_world(unsigned refuse, unsigned after)
{
    static const struct idem_policy_options policy = {.ignore_environment =
                                                          true};
    const struct flow_options options = {
        .retries = true,
        .channel = {.policy = &policy},
        .on_channel = &noting,
    };

    noting = (struct idem_interceptor){.ops = &noting_ops};
    passed_out = passed_in = 0;
    refused = NULL;
    flow_world_open(&world, &options);
    atomic_store(&world.refuse, refuse);
    world.after = after;
}

/* rpc 23, 38: messages and the half close are replayed in order, also over
 * several failures. */
static void
what_was_written_is_written_again(void **state)
{
    struct flow_sum_stream *stream;
    flow_sum_reply *reply = NULL;
    struct idem_outcome outcome;

    (void)state;
    open_world(3, 2);
    stream = flow_sum_open(world.channel, NULL);
    assert_int_equal(flow_sum_write(stream, flow_note_of(1, 10)), IDEM_OK);
    assert_int_equal(flow_sum_write(stream, flow_note_of(2, 10)), IDEM_OK);
    flow_world_await(&world, &world.ended, 2);
    assert_int_equal(flow_sum_write(stream, flow_note_of(3, 10)), IDEM_OK);
    assert_int_equal(flow_sum_finish(stream, &reply, &outcome), IDEM_OK);
    assert_int_equal(reply->count, 3);
    assert_int_equal(reply->sum, 6);
    assert_int_equal(outcome.attempts, 4);
    /* rpc 91: a hook of messages sees each once, whatever is repeated. */
    assert_int_equal(passed_out, 3);
    flow_sum_reply_free(reply);
    flow_world_close(&world);
}

/* rpc 5, 22, 25, 39: something of it has come. */
static void
after_the_first_message_it_is_not_begun_again(void **state)
{
    struct flow_chat_stream *stream;
    struct idem_outcome outcome;

    (void)state;
    open_world(1, 3);
    stream = flow_chat_open(world.channel, NULL);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(flow_chat_write(stream, flow_note_of(i, 1)), IDEM_OK);
        assert_note(flow_chat_next(stream), i, 1);
    }
    assert_null(flow_chat_next(stream));
    assert_int_equal(flow_chat_finish(stream, &outcome), IDEM_ABORTED);
    assert_int_equal(outcome.attempts, 1);
    assert_int_equal(outcome.stop, IDEM_STOP_COMMITTED);
    assert_int_equal(passed_in, 3);
    flow_world_close(&world);
}

/* rpc 15, 41: of streams as of calls. */
static void
more_than_is_kept_is_written_once(void **state)
{
    struct flow_sum_stream *stream;
    enum idem_status status = IDEM_OK;
    struct idem_outcome outcome;

    (void)state;
    open_world(1, 8);
    stream = flow_sum_open(world.channel, NULL);
    for (unsigned i = 1; i <= 40 && status == IDEM_OK; i++)
        status = flow_sum_write(stream, flow_note_of(i, 100000));
    assert_int_equal(flow_sum_finish(stream, NULL, &outcome), IDEM_ABORTED);
    assert_int_equal(outcome.stop, IDEM_STOP_COMMITTED);
    assert_int_equal(outcome.attempts, 1);
    flow_world_close(&world);
}

static void
a_hook_may_refuse_what_comes(void **state)
{
    struct flow_chat_stream *stream;
    struct idem_outcome outcome;

    (void)state;
    open_world(0, 0);
    refused = "not this one";
    stream = flow_chat_open(world.channel, NULL);
    assert_int_equal(flow_chat_write(stream, flow_note_of(1, 1)), IDEM_OK);
    assert_null(flow_chat_next(stream));
    assert_int_equal(flow_chat_finish(stream, &outcome),
                     IDEM_PERMISSION_DENIED);
    assert_string_equal(outcome.message, "not this one");
    flow_world_await(&world, &world.given_up, 1);
    flow_world_close(&world);
}

/* rpc 91: and it does not run for unary calls. */
static void
a_hook_of_messages_sees_no_unary_call(void **state)
{
    (void)state;
    open_world(0, 0);
    flow_world_say(&world, 1);
    assert_int_equal(passed_out + passed_in, 0);
    flow_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_written_again),
        cmocka_unit_test(after_the_first_message_it_is_not_begun_again),
        cmocka_unit_test(more_than_is_kept_is_written_once),
        cmocka_unit_test(a_hook_may_refuse_what_comes),
        cmocka_unit_test(a_hook_of_messages_sees_no_unary_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
