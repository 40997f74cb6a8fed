#include "call_world.h"

#include "context.h"
#include "validate.h"
#include "wire_bytes.h"

#include <string.h>

#include "shapes.pb-c.h"

static const struct idem_method method = {
    .name = "shapes.v1.Shapes/All",
    .request = &shapes__v1__all__descriptor,
};

struct handler_call {
    struct call_world *w;
    struct call *call;
    struct idem_context context;
};

static struct handler_call
begin(struct call_world *w)
{
    struct handler_call h = {.w = w, .call = call_world_call(w)};

    h.call->base.method = &method;
    return h;
}

static void
end(struct handler_call *h)
{
    call_unref(h->call);
    call_unref(h->call);
}

static void
a_handler_sees_its_call(void **state)
{
    struct handler_call h = begin(*state);
    struct idem_context *context = &h.context;
    int user;

    h.call->base.key = idem_bytes_of("order-7");
    h.call->base.attempt = 3;
    h.call->base.tenant = idem_bytes_of("acme");
    context_init(context, &h.call->base, &user);
    context_begin(context);
    assert_ptr_equal(idem_context_user(context), &user);
    assert_string_equal(idem_context_key(context), "order-7");
    assert_int_equal(idem_context_attempt(context), 3);
    assert_int_equal(idem_context_fence(context), 0);
    assert_true(idem_context_owned(context));
    assert_true(idem_context_remaining_ms(context) == INT64_MAX);
    assert_false(idem_context_cancelled(context));
    assert_int_equal(idem_context_tenant(context).size, 4);
    assert_ptr_equal(idem_context_metadata(context), &h.call->base.metadata);
    assert_ptr_equal(idem_context_call(context), &h.call->base);
    assert_string_equal(idem_context_printf(context, "%d", 7), "7");
    assert_int_equal(*(char *)idem_context_alloc(context, 5), 0);
    end(&h);
}

static void
the_clock_and_the_caller_end_what_remains(void **state)
{
    struct handler_call h = begin(*state);

    h.call->base.deadline_ns = h.w->fake.now_ns + 30 * MS;
    context_init(&h.context, &h.call->base, NULL);
    assert_int_equal(idem_context_remaining_ms(&h.context), 30);
    fake_clock_advance_ms(&h.w->fake, 29);
    assert_false(idem_context_cancelled(&h.context));
    fake_clock_advance_ms(&h.w->fake, 1);
    assert_int_equal(idem_context_remaining_ms(&h.context), 0);
    assert_true(idem_context_cancelled(&h.context));
    end(&h);
    h = begin(*state);
    context_init(&h.context, &h.call->base, NULL);
    call_interrupt(h.call, IDEM_CANCELLED);
    assert_true(idem_context_cancelled(&h.context));
    end(&h);
}

static void
what_once_sets_is_what_the_handler_reads(void **state)
{
    struct handler_call h = begin(*state);
    int slot;

    context_init(&h.context, &h.call->base, NULL);
    assert_null(idem_context_slot(&h.context));
    idem_context_set_fence(&h.context, 12);
    idem_context_set_slot(&h.context, &slot);
    idem_context_set_owned(&h.context, false);
    assert_int_equal(idem_context_fence(&h.context), 12);
    assert_ptr_equal(idem_context_slot(&h.context), &slot);
    assert_false(idem_context_owned(&h.context));
    end(&h);
}

/* rpc 85: a message that is no UTF-8 loses its bad bytes, not its status. */
static void
what_a_handler_says_is_the_outcome(void **state)
{
    struct handler_call h = begin(*state);
    const struct idem_outcome *outcome = &h.call->base.outcome;
    struct idem_error err;

    context_init(&h.context, &h.call->base, NULL);
    context_begin(&h.context);
    context_end(&h.context, idem_context_fail(&h.context, IDEM_NOT_FOUND,
                                              "no account %s\xFF", "bob"));
    assert_int_equal(outcome->status, IDEM_NOT_FOUND);
    assert_int_equal(outcome->effect, IDEM_EFFECT_ROLLED_BACK);
    assert_string_equal(outcome->message, "no account bob?");

    context_begin(&h.context);
    idem_fail_reason(&err, IDEM_ABORTED, "LOCKED", "later");
    context_end(&h.context, idem_context_fail_with(&h.context, &err));
    assert_int_equal(outcome->status, IDEM_ABORTED);
    assert_string_equal(outcome->reason, "LOCKED");
    assert_int_equal(outcome->retry_after_ms, -1);

    context_begin(&h.context);
    idem_context_retry_after(&h.context, 250);
    context_end(&h.context, IDEM_UNAVAILABLE);
    assert_int_equal(outcome->retry_after_ms, 250);
    context_begin(&h.context);
    idem_context_retry_after(&h.context, -1);
    context_end(&h.context, IDEM_UNAVAILABLE);
    assert_int_equal(outcome->retry_after_ms, IDEM_RETRY_NEVER);

    context_begin(&h.context);
    context_end(&h.context, (enum idem_status)77);
    assert_int_equal(outcome->status, IDEM_UNKNOWN);
    assert_string_equal(outcome->message, "");

    context_begin(&h.context);
    context_end(&h.context, IDEM_OK);
    assert_int_equal(outcome->status, IDEM_OK);
    assert_int_equal(outcome->effect, IDEM_EFFECT_COMMITTED);
    end(&h);
}

/* rpc 82: what breaks the rules is refused and dropped. A handler that runs
 * again does not send the trailers of the run before. */
static void
trailers_are_added_and_begin_anew_with_each_run(void **state)
{
    struct handler_call h = begin(*state);
    struct idem_error err;

    context_init(&h.context, &h.call->base, NULL);
    context_begin(&h.context);
    assert_int_equal(idem_context_add_trailer(&h.context, "a", "1", &err),
                     IDEM_OK);
    assert_int_equal(idem_context_add_trailer(&h.context, "idem-a", "1", &err),
                     IDEM_INTERNAL);
    assert_int_equal(idem_context_add_trailer(&h.context, "A", "1", &err),
                     IDEM_INTERNAL);
    assert_non_null(h.call->base.trailers.first);
    context_begin(&h.context);
    assert_null(h.call->base.trailers.first);
    end(&h);
}

/* --- Validate --- */

static const struct ProtobufCMessage *validated;

static enum idem_step
keep_message(struct call *call)
{
    validated = call->base.message;
    assert_int_equal(((const Shapes__V1__All *)validated)->i32, 5);
    return call_world_answer(call, "ok");
}

static void
run(struct call_world *w, const struct wire_bytes *request)
{
    struct handler_call h = begin(w);

    h.call->base.request = wire_view(request);
    context_init(&h.context, &h.call->base, NULL);
    call_begin(h.call);
    call_unref(h.call);
}

static void
a_request_is_unpacked_before_those_inside(void **state)
{
    struct call_world *w = *state;
    struct wire_bytes request = {.size = 0};

    assert_int_equal(chain_add(&w->chain, validate_new(NULL), NULL), IDEM_OK);
    assert_string_equal(w->chain.text, "validate");
    w->send = keep_message;
    wire_number(&request, 1, 5);
    validated = NULL;
    run(w, &request);
    assert_int_equal(w->outcome.status, IDEM_OK);
    assert_non_null(validated);
}

/* Cases B086, B087 and rpc 94: the one who records sees nothing of it. */
static void
a_request_that_cannot_be_read_is_refused_before_any_record(void **state)
{
    struct call_world *w = *state;
    const struct idem_message_limits limits = {.max_size = 10};
    struct wire_bytes request = {.size = 0};

    call_world_add(w, "once", IDEM_BAND_KEY, call_world_pass_down, NULL);
    assert_int_equal(chain_add(&w->chain, validate_new(&limits), NULL),
                     IDEM_OK);
    wire_text(&request, 15, "\xFF");
    run(w, &request);
    assert_int_equal(w->outcome.status, IDEM_INVALID_ARGUMENT);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_REFUSED);
    assert_false(w->outcome.final);
    assert_non_null(strstr(w->outcome.message, "shapes.v1.All.text"));
    request.size = 0;
    wire_text(&request, 15, "more than ten bytes");
    run(w, &request);
    assert_int_equal(w->outcome.status, IDEM_RESOURCE_EXHAUSTED);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_REFUSED);
    assert_string_equal(w->trail, "");
    assert_int_equal(w->sends, 0);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, call_world_set_up,                   \
                                    call_world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_handler_sees_its_call),
        TEST(the_clock_and_the_caller_end_what_remains),
        TEST(what_once_sets_is_what_the_handler_reads),
        TEST(what_a_handler_says_is_the_outcome),
        TEST(trailers_are_added_and_begin_anew_with_each_run),
        TEST(a_request_is_unpacked_before_those_inside),
        TEST(a_request_that_cannot_be_read_is_refused_before_any_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
