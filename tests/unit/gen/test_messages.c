#include "support.h"

#include "google/protobuf/descriptor.idem.h"
#include "idem/v1/wire.idem.h"
#include "shop/quirks.idem.h"
#include "shop/rich.idem.h"

#include <stdlib.h>
#include <string.h>

/* There and back over the wire; the caller frees. */
static shop_buy_request *
again(const shop_buy_request *request)
{
    size_t size = protobuf_c_message_get_packed_size(&request->base);
    uint8_t *bytes = malloc(size + 1);
    ProtobufCMessage *copy;

    assert_non_null(bytes);
    assert_int_equal(protobuf_c_message_pack(&request->base, bytes), size);
    copy =
        protobuf_c_message_unpack(request->base.descriptor, NULL, size, bytes);
    free(bytes);
    assert_non_null(copy);
    return (shop_buy_request *)copy;
}

static void
an_optional_that_is_absent_stays_absent(void **state)
{
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    shop_buy_request *copy = again(&request);

    (void)state;
    assert_int_equal(copy->_note_case, 0);
    assert_int_equal(copy->_urgency_case, 0);
    shop_buy_request_free(copy);
}

/* B094: in plain proto3 zero and absent are the same. */
static void
an_optional_that_is_zero_stays_present(void **state)
{
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    shop_buy_request *copy;

    (void)state;
    request._urgency_case = SHOP_BUY_REQUEST_HAS_URGENCY;
    request._note_case = SHOP_BUY_REQUEST_HAS_NOTE;
    request.note = "";
    copy = again(&request);
    assert_int_equal(copy->_urgency_case, SHOP_BUY_REQUEST_HAS_URGENCY);
    assert_int_equal(copy->urgency, 0);
    assert_int_equal(copy->_note_case, SHOP_BUY_REQUEST_HAS_NOTE);
    assert_string_equal(copy->note, "");
    shop_buy_request_free(copy);
}

static void
literals_need_no_cast_and_survive(void **state)
{
    shop_buy_request_labels_entry label = SHOP_BUY_REQUEST_LABELS_ENTRY_INIT;
    shop_buy_request_labels_entry *labels[] = {&label};
    shop_buy_request_line line = SHOP_BUY_REQUEST_LINE_INIT;
    shop_buy_request_line *lines[] = {&line};
    shop_buy_request request = SHOP_BUY_REQUEST_INIT;
    shop_buy_request *copy;

    (void)state;
    label.key = "colour";
    label.value = "red";
    line.product = "tea";
    line.kind = SHOP_BUY_REQUEST_LINE_KIND_USED;
    request.order_id = "o1";
    request.labels = labels;
    request.n_labels = 1;
    request.lines = lines;
    request.n_lines = 1;
    request.payment_case = SHOP_BUY_REQUEST_PAYMENT_CARD;
    request.card = "4711";
    copy = again(&request);
    assert_string_equal(copy->order_id, "o1");
    assert_string_equal(copy->labels[0]->value, "red");
    assert_string_equal(copy->lines[0]->product, "tea");
    assert_int_equal(copy->lines[0]->kind, SHOP_BUY_REQUEST_LINE_KIND_USED);
    assert_int_equal(copy->payment_case, SHOP_BUY_REQUEST_PAYMENT_CARD);
    assert_string_equal(copy->card, "4711");
    shop_buy_request_free(copy);
}

static void
freeing_null_is_fine(void **state)
{
    (void)state;
    shop_buy_request_free(NULL);
    shop_common_money_free(NULL);
    idem_v1_open_header_free(NULL);
}

static void
the_policy_is_const_data(void **state)
{
    const struct idem_method *buy = &shop_buy_method;
    const struct idem_method *hook = &shop_send_http_hook_method;

    (void)state;
    assert_string_equal(buy->name, SHOP_BUY_METHOD);
    assert_string_equal(buy->scope, "shop/buy");
    assert_int_equal(buy->mode, IDEM_MODE_TRANSACTION);
    assert_int_equal(buy->window_ms, 3600000);
    assert_true(buy->recorded & 1u << IDEM_ABORTED);
    assert_false(buy->recorded & 1u << IDEM_NOT_FOUND);
    assert_int_equal(buy->n_key_fields, 2);
    assert_int_equal(buy->key_fields[1].depth, 2);
    assert_int_equal(buy->key_fields[1].numbers[0], 2);
    assert_int_equal(buy->key_fields[1].numbers[1], 2);
    assert_int_equal(buy->n_ignored, 2);
    assert_string_equal(hook->scope, "group:hooks");
    assert_false(hook->key_required);
    assert_int_equal(shop_look_method.retry.max_attempts, 0);
}

/* Options in pieces: libprotobuf-c 1.4.1 would lose the first code. */
static void
options_in_pieces_are_one(void **state)
{
    (void)state;
    assert_int_equal(shop_send_http_hook_method.retry.max_attempts, 4);
    assert_int_equal(shop_send_http_hook_method.retry.retryable,
                     1u << IDEM_UNKNOWN | 1u << IDEM_UNAVAILABLE);
}

static void
names_that_protoc_c_bends_are_hit(void **state)
{
    http_req_x request = HTTP_REQ_X_INIT;
    http_req_x_in2_ner inner = HTTP_REQ_X_IN2_NER_INIT;
    const char *gone[] = {"a"};

    (void)state;
    request.orderid = "o";
    request.delete_ = gone;
    request.n_delete_ = 1;
    request.what_kind__of_case = HTTP_REQ_X_WHAT_KIND_OF_C2;
    request._is_ok_case = HTTP_REQ_X_HAS_IS_OK;
    request.colour = E_COLOUR_KIND_B_B;
    request.c2 = "c";
    assert_int_equal(protobuf_c_message_get_packed_size(&request.base), 13);
    assert_int_equal(E_COLOUR_KIND_OTHER, E_COLOUR_KIND_B_B);
    inner.descriptor = "d";
    assert_int_equal(protobuf_c_message_get_packed_size(&inner.base), 3);
    assert_string_equal(x1_do_it_method.name, "X1/doIt");
    assert_int_equal(x1_do_it_method.key_fields[0].numbers[0], 2);
}

static void
proto2_keeps_its_defaults_and_names(void **state)
{
    shop_old_thing thing = SHOP_OLD_THING_INIT;

    (void)state;
    assert_string_equal(thing.name, "thing");
    assert_true(thing.big);
    assert_string_equal(shop__old__thing__descriptor.fields[0].name, "id");
}

static const google_protobuf_file_descriptor_proto *
file_named(const google_protobuf_file_descriptor_set *set, const char *name)
{
    for (size_t i = 0; i < set->n_file; i++)
        if (!strcmp(set->file[i]->name, name))
            return set->file[i];
    return NULL;
}

static void
a_service_carries_its_descriptors(void **state)
{
    const struct idem_bytes bytes = shop_service.descriptors;
    google_protobuf_file_descriptor_set *set =
        (google_protobuf_file_descriptor_set *)protobuf_c_message_unpack(
            &google__protobuf__file_descriptor_set__descriptor, NULL,
            bytes.size, bytes.data);
    const google_protobuf_file_descriptor_proto *last;

    (void)state;
    assert_non_null(set);
    last = set->file[set->n_file - 1];
    assert_string_equal(last->name, "shop/rich.proto");
    assert_int_equal(last->service[0]->n_method, shop_service.n_methods);
    assert_null(last->source_code_info);
    assert_non_null(file_named(set, "idem/v1/options.proto"));
    assert_non_null(file_named(set, "google/protobuf/empty.proto"));
    google_protobuf_file_descriptor_set_free(set);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_optional_that_is_absent_stays_absent),
        cmocka_unit_test(an_optional_that_is_zero_stays_present),
        cmocka_unit_test(literals_need_no_cast_and_survive),
        cmocka_unit_test(freeing_null_is_fine),
        cmocka_unit_test(the_policy_is_const_data),
        cmocka_unit_test(options_in_pieces_are_one),
        cmocka_unit_test(names_that_protoc_c_bends_are_hit),
        cmocka_unit_test(proto2_keeps_its_defaults_and_names),
        cmocka_unit_test(a_service_carries_its_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
