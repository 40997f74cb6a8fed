#include "support.h"

#include "fake_runtime.h"
#include "shop/rich.idem.h"

#include <stdlib.h>
#include <string.h>

static int
reset(void **state)
{
    (void)state;
    memset(&fake_runtime, 0, sizeof(fake_runtime));
    return 0;
}

static void
a_blocking_stub_hands_out_a_typed_reply(void **state)
{
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    shop_buy_reply *reply = NULL, *made = malloc(sizeof(*made));
    struct idem_call_options options = {.key = "k1"};
    struct idem_outcome outcome;

    (void)state;
    assert_non_null(made);
    *made = (shop_buy_reply)SHOP_BUY_REPLY_INIT;
    made->state = SHOP_ORDER_STATE_PAID;
    fake_runtime.reply = &made->base;
    assert_int_equal(shop_buy(NULL, &request, &reply, &options, &outcome),
                     IDEM_OK);
    assert_ptr_equal(fake_runtime.method, &shop_buy_method);
    assert_ptr_equal(fake_runtime.request, &request.base);
    assert_ptr_equal(fake_runtime.options, &options);
    assert_int_equal(reply->state, SHOP_ORDER_STATE_PAID);
    shop_buy_reply_free(reply);
}

static void
a_failed_call_leaves_the_reply_alone(void **state)
{
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    shop_buy_reply mine, *reply = &mine;

    (void)state;
    fake_runtime.answer = IDEM_ABORTED;
    assert_int_equal(shop_buy(NULL, &request, &reply, NULL, NULL),
                     IDEM_ABORTED);
    assert_ptr_equal(reply, &mine);
}

static void
reply_options_and_outcome_may_be_null(void **state)
{
    shop_party request = SHOP_PARTY_INIT;

    (void)state;
    assert_int_equal(shop_call_register(NULL, &request, NULL, NULL, NULL),
                     IDEM_OK);
    assert_string_equal(fake_runtime.method->name, "shop.v1.Shop/Register");
}

static const shop_buy_reply *seen;
static enum idem_status seen_status;

static void
note(struct idem_call *call, const shop_buy_reply *reply,
     const struct idem_outcome *outcome)
{
    (void)call;
    seen = reply;
    seen_status = outcome->status;
}

static void
an_async_stub_calls_the_authors_typed_callback(void **state)
{
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    shop_buy_reply reply = SHOP_BUY_REPLY_INIT;
    struct idem_outcome outcome = {.status = IDEM_NOT_FOUND};

    (void)state;
    assert_null(shop_buy_async(NULL, &request, NULL, note));
    fake_runtime.done(NULL, &reply.base, &outcome, fake_runtime.author);
    assert_ptr_equal(seen, &reply);
    assert_int_equal(seen_status, IDEM_NOT_FOUND);
}

static void
a_recorded_reply_is_read_as_the_methods_own_type(void **state)
{
    shop_buy_reply given = SHOP_BUY_REPLY_INIT, *reply = NULL;
    struct idem_bytes bytes = {NULL, 0};

    (void)state;
    fake_runtime.reply = &given.base;
    assert_int_equal(shop_buy_read_reply(bytes, &reply, NULL), IDEM_OK);
    assert_ptr_equal(fake_runtime.method, &shop_buy_method);
    assert_ptr_equal(reply, &given);
    fake_runtime.answer = IDEM_INVALID_ARGUMENT;
    reply = NULL;
    assert_int_equal(shop_buy_read_reply(bytes, &reply, NULL),
                     IDEM_INVALID_ARGUMENT);
    assert_null(reply);
}

static void
an_async_stub_without_a_callback_is_fine(void **state)
{
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    struct idem_outcome outcome = {.status = IDEM_OK};

    (void)state;
    assert_null(shop_buy_async(NULL, &request, NULL, NULL));
    fake_runtime.done(NULL, NULL, &outcome, fake_runtime.author);
}

static enum idem_status
buy(struct idem_context *context, const shop_buy_request *request,
    shop_buy_reply *reply)
{
    (void)context;
    reply->state =
        request->urgency ? SHOP_ORDER_STATE_PAID : SHOP_ORDER_STATE_OPEN;
    return IDEM_DATA_LOSS;
}

static void
a_handler_gets_its_own_types(void **state)
{
    const struct shop_handlers handlers = {.buy = buy};
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    shop_buy_reply reply = SHOP_BUY_REPLY_INIT;

    (void)state;
    request._urgency_case = SHOP_BUY_REQUEST_HAS_URGENCY;
    request.urgency = 9;
    assert_int_equal(
        shop_buy_method.invoke(&handlers, NULL, &request.base, &reply.base),
        IDEM_DATA_LOSS);
    assert_int_equal(reply.state, SHOP_ORDER_STATE_PAID);
}

static void
an_empty_slot_is_unimplemented(void **state)
{
    const struct shop_handlers handlers = {.buy = buy};

    (void)state;
    assert_int_equal(shop_delete_method.invoke(&handlers, NULL, NULL, NULL),
                     IDEM_UNIMPLEMENTED);
    assert_string_equal(fake_runtime.failure,
                        "shop.v1.Shop/Delete has no handler");
}

static struct idem_statements *seen_statements;
static const struct idem_rows *const *seen_rows;

static enum idem_status
move_statements(struct idem_context *context, const shop_party *request,
                struct idem_statements *statements)
{
    (void)context;
    (void)request;
    seen_statements = statements;
    return IDEM_OK;
}

static enum idem_status
move_reply(struct idem_context *context, const shop_party *request,
           const struct idem_rows *const *rows, shop_buy_reply *reply)
{
    (void)context;
    seen_rows = rows;
    reply->state = SHOP_ORDER_STATE_PAID;
    return request->number == 7 ? IDEM_OK : IDEM_NOT_FOUND;
}

/* Without rows it is the first half's turn, with them the second one's. */
static void
a_method_of_statements_has_two_slots(void **state)
{
    const struct shop_back_office_handlers table = {
        .move_statements = move_statements, .move_reply = move_reply};
    const struct idem_rows *const rows[] = {NULL};
    struct idem_statements *statements =
        (struct idem_statements *)(void *)state;
    shop_party request = SHOP_PARTY_INIT;
    shop_buy_reply reply = SHOP_BUY_REPLY_INIT;
    idem_invoke_fn *invoke = shop_back_office_move_method.invoke;

    request.number = 7;
    fake_runtime.statements = statements;
    assert_int_equal(invoke(&table, NULL, &request.base, &reply.base), IDEM_OK);
    assert_ptr_equal(seen_statements, statements);
    assert_null(seen_rows);
    fake_runtime.rows = rows;
    assert_int_equal(invoke(&table, NULL, &request.base, &reply.base), IDEM_OK);
    assert_ptr_equal(seen_rows, rows);
    assert_int_equal(reply.state, SHOP_ORDER_STATE_PAID);
}

static void
half_a_method_of_statements_is_unimplemented(void **state)
{
    const struct shop_back_office_handlers table = {.move_reply = move_reply};
    shop_party request = SHOP_PARTY_INIT;
    shop_buy_reply reply = SHOP_BUY_REPLY_INIT;

    (void)state;
    assert_int_equal(shop_back_office_move_method.invoke(
                         &table, NULL, &request.base, &reply.base),
                     IDEM_UNIMPLEMENTED);
    assert_string_equal(fake_runtime.failure,
                        "shop.v1.BackOffice/Move has no handler");
}

static shop_party *kept;

static void
await(struct idem_context *context, const shop_party *request,
      shop_party *reply)
{
    (void)context;
    (void)request;
    kept = reply;
}

static void
a_slot_that_answers_later_returns_nothing(void **state)
{
    const struct shop_back_office_handlers table = {.await = await};
    shop_party request = SHOP_PARTY_INIT, reply = SHOP_PARTY_INIT;
    idem_invoke_fn *invoke = shop_back_office_await_method.invoke;

    (void)state;
    fake_runtime.completed = IDEM_OK;
    assert_int_equal(invoke(&table, NULL, &request.base, &reply.base), IDEM_OK);
    assert_ptr_equal(kept, &reply);
    assert_int_equal(fake_runtime.completed, IDEM_OK);
}

static void
an_empty_slot_that_answers_later_is_completed(void **state)
{
    const struct shop_back_office_handlers table = {0};
    shop_party request = SHOP_PARTY_INIT, reply = SHOP_PARTY_INIT;

    (void)state;
    (void)shop_back_office_await_method.invoke(&table, NULL, &request.base,
                                               &reply.base);
    assert_int_equal(fake_runtime.completed, IDEM_UNIMPLEMENTED);
    assert_string_equal(fake_runtime.failure,
                        "shop.v1.BackOffice/Await has no handler");
}

static void
a_table_is_registered_with_its_size_and_user(void **state)
{
    const struct shop_handlers handlers = {.buy = buy};
    int user;

    (void)state;
    assert_int_equal(shop_register(NULL, &handlers, &user, NULL), IDEM_OK);
    assert_ptr_equal(fake_runtime.service, &shop_service);
    assert_ptr_equal(fake_runtime.handlers, &handlers);
    assert_int_equal(fake_runtime.size, sizeof(handlers));
    assert_ptr_equal(fake_runtime.user, &user);
}

static enum idem_status
switch_over(struct idem_context *context, const shop_party *request,
            shop_party *reply)
{
    (void)context;
    (void)request;
    (void)reply;
    return IDEM_OK;
}

static enum idem_probed
probe_switch(struct idem_context *context, const shop_party *request,
             shop_party *reply)
{
    (void)context;
    reply->number = request->number + 1;
    return IDEM_PROBED_DONE;
}

static void
what_an_option_promises_is_registered_or_refused(void **state)
{
    struct shop_handlers handlers = {.switch_ = switch_over};

    (void)state;
    assert_int_equal(shop_register(NULL, &handlers, NULL, NULL),
                     IDEM_FAILED_PRECONDITION);
    assert_string_equal(fake_runtime.failure,
                        "shop.v1.Shop/Switch states after_crash: PROBE: fill "
                        "the slot switch_probe");
    assert_null(fake_runtime.handlers);
    handlers.switch_probe = probe_switch;
    assert_int_equal(shop_register(NULL, &handlers, NULL, NULL),
                     IDEM_FAILED_PRECONDITION);
    assert_string_equal(fake_runtime.failure,
                        "shop.v1.Shop/Switch states oversize: REBUILD: fill "
                        "the slot switch_rebuild");
    handlers.switch_rebuild = switch_over;
    assert_int_equal(shop_register(NULL, &handlers, NULL, NULL), IDEM_OK);
    assert_ptr_equal(fake_runtime.handlers, &handlers);
}

static void
a_probe_gets_its_own_types(void **state)
{
    struct shop_handlers handlers = {.switch_probe = probe_switch};
    shop_party request = SHOP_PARTY_INIT, reply = SHOP_PARTY_INIT;

    (void)state;
    request.number = 6;
    assert_int_equal(
        shop_switch_method.probe(&handlers, NULL, &request.base, &reply.base),
        IDEM_PROBED_DONE);
    assert_int_equal(reply.number, 7);
    handlers.switch_probe = NULL;
    assert_int_equal(
        shop_switch_method.probe(&handlers, NULL, &request.base, &reply.base),
        IDEM_PROBED_UNKNOWN);
    assert_null(shop_buy_method.probe);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_blocking_stub_hands_out_a_typed_reply, reset),
        cmocka_unit_test_setup(a_failed_call_leaves_the_reply_alone, reset),
        cmocka_unit_test_setup(reply_options_and_outcome_may_be_null, reset),
        cmocka_unit_test_setup(an_async_stub_calls_the_authors_typed_callback,
                               reset),
        cmocka_unit_test_setup(a_recorded_reply_is_read_as_the_methods_own_type,
                               reset),
        cmocka_unit_test_setup(an_async_stub_without_a_callback_is_fine, reset),
        cmocka_unit_test_setup(a_handler_gets_its_own_types, reset),
        cmocka_unit_test_setup(an_empty_slot_is_unimplemented, reset),
        cmocka_unit_test_setup(what_an_option_promises_is_registered_or_refused,
                               reset),
        cmocka_unit_test_setup(a_probe_gets_its_own_types, reset),
        cmocka_unit_test_setup(a_method_of_statements_has_two_slots, reset),
        cmocka_unit_test_setup(half_a_method_of_statements_is_unimplemented,
                               reset),
        cmocka_unit_test_setup(a_slot_that_answers_later_returns_nothing,
                               reset),
        cmocka_unit_test_setup(an_empty_slot_that_answers_later_is_completed,
                               reset),
        cmocka_unit_test_setup(a_table_is_registered_with_its_size_and_user,
                               reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
