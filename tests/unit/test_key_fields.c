#include "support.h"

#include "arena.h"
#include "key_orders.idem.h"

#include <idem/key.h>
#include <idem/message.h>
#include <idem/reason.h>

#include <string.h>

#define METHOD(name) (&key_orders_v1_orders_##name##_method)

static char text_id[] = "order-17", text_shop[] = "berlin";
static uint8_t token_bytes[] = {0, 1, 2};

/* An order that has all. */
struct order {
    key_orders_v1_order message;
    key_orders_v1_buyer buyer;
    key_orders_v1_account account;
};

static void
fill(struct order *order)
{
    *order = (struct order){KEY_ORDERS_V1_ORDER_INIT, KEY_ORDERS_V1_BUYER_INIT,
                            KEY_ORDERS_V1_ACCOUNT_INIT};
    order->account.number = 4711;
    order->buyer.account = &order->account;
    order->message.id = text_id;
    order->message.shop = text_shop;
    order->message.buyer = &order->buyer;
    order->message.small = -3;
    order->message.big = UINT64_MAX;
    order->message.fixed = INT64_MIN;
    order->message.token.data = token_bytes;
    order->message.token.len = sizeof(token_bytes);
}

static const char *
key_of(const struct idem_method *method, const struct order *order)
{
    static char keys[2][IDEM_KEY_MAX + 1];
    static unsigned turn;
    char *key = keys[turn++ % 2];

    assert_int_equal(
        idem_key_from_fields(key, method, &order->message.base, NULL), IDEM_OK);
    return key;
}

/* What the message says is missing. */
static void
assert_missing(const struct idem_method *method, const struct order *order,
               const char *path)
{
    char key[IDEM_KEY_MAX + 1];
    struct idem_error err;

    assert_int_equal(
        idem_key_from_fields(key, method, &order->message.base, &err),
        IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.reason, IDEM_KEY_MISSING);
    assert_non_null(strstr(err.message, path));
}

static void
the_same_fields_make_the_same_key(void **state)
{
    struct order one, two;
    struct idem_key key;

    (void)state;
    fill(&one);
    fill(&two);
    two.message.shop = (char[]){"other"}; /* not part of the key */
    assert_string_equal(key_of(METHOD(by_id), &one),
                        key_of(METHOD(by_id), &two));
    assert_int_equal(
        idem_key_parse(&key, idem_bytes_of(key_of(METHOD(by_id), &one)), NULL),
        IDEM_OK);
    assert_false(key.minted);
    assert_memory_equal(key.text.data, "idf_", 4);
}

static void
another_value_makes_another_key(void **state)
{
    const struct idem_method *numbers = METHOD(by_numbers);
    struct order one, two;

    (void)state;
    fill(&one);
    fill(&two);
    two.message.small = 3;
    assert_string_not_equal(key_of(numbers, &one), key_of(numbers, &two));
    fill(&two);
    two.message.big--;
    assert_string_not_equal(key_of(numbers, &one), key_of(numbers, &two));
    fill(&two);
    two.message.fixed++;
    assert_string_not_equal(key_of(numbers, &one), key_of(numbers, &two));
    two.account.number = 1;
    assert_string_not_equal(key_of(METHOD(by_nested), &one),
                            key_of(METHOD(by_nested), &two));
}

/* As defect D7 of Restate: "ab" + "c" is not "a" + "bc". */
static void
values_cannot_run_into_one_another(void **state)
{
    struct order one, two;

    (void)state;
    fill(&one);
    fill(&two);
    one.message.id = (char[]){"ab"};
    one.message.shop = (char[]){"c"};
    two.message.id = (char[]){"a"};
    two.message.shop = (char[]){"bc"};
    assert_string_not_equal(key_of(METHOD(by_two), &one),
                            key_of(METHOD(by_two), &two));
}

static void
a_field_that_is_not_set_is_named(void **state)
{
    struct order order;

    (void)state;
    fill(&order);
    order.message.shop = (char[]){""};
    assert_missing(METHOD(by_two), &order, "shop");
    order.message.big = 0;
    assert_missing(METHOD(by_numbers), &order, "big");
    order.message.token.len = 0;
    assert_missing(METHOD(by_choice), &order, "token");
    order.account.number = 0;
    assert_missing(METHOD(by_nested), &order, "buyer.account.number");
    order.buyer.account = NULL;
    assert_missing(METHOD(by_nested), &order, "buyer.account.number");
    order.message.buyer = NULL;
    assert_missing(METHOD(by_nested), &order, "buyer.account.number");
}

static void
false_and_the_first_of_an_enum_are_values(void **state)
{
    struct order plain, express, blue;

    (void)state;
    fill(&plain);
    fill(&express);
    fill(&blue);
    express.message.express = 1;
    blue.message.colour = KEY_ORDERS_V1_ORDER_COLOUR_BLUE;
    assert_string_not_equal(key_of(METHOD(by_choice), &plain),
                            key_of(METHOD(by_choice), &express));
    assert_string_not_equal(key_of(METHOD(by_choice), &plain),
                            key_of(METHOD(by_choice), &blue));
}

static void
the_server_makes_the_same_key_from_the_bytes(void **state)
{
    const struct idem_method *methods[] = {METHOD(by_id), METHOD(by_nested),
                                           METHOD(by_numbers),
                                           METHOD(by_choice)};
    struct idem_arena *arena = arena_new(4096, 0);
    struct ProtobufCMessage *received;
    struct idem_bytes bytes;
    struct order order;
    char key[IDEM_KEY_MAX + 1];

    (void)state;
    fill(&order);
    assert_int_equal(
        idem_message_pack(&order.message.base, arena, &bytes, NULL), IDEM_OK);
    assert_int_equal(idem_message_unpack(methods[0]->request, bytes, NULL,
                                         arena, &received, NULL),
                     IDEM_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(idem_key_from_fields(key, methods[i], received, NULL),
                         IDEM_OK);
        assert_string_equal(key, key_of(methods[i], &order));
    }
    arena_free(arena);
}

/* A key that changes with a release of the library would open every record
 * again. */
static void
the_key_is_the_same_in_every_release(void **state)
{
    struct order order;

    (void)state;
    fill(&order);
    assert_string_equal(key_of(METHOD(by_numbers), &order),
                        "idf_be5273b16309908fd9ca8835d5074fca"
                        "8d44acaace910d13f9ade88b5e2b5ece");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_fields_make_the_same_key),
        cmocka_unit_test(another_value_makes_another_key),
        cmocka_unit_test(values_cannot_run_into_one_another),
        cmocka_unit_test(a_field_that_is_not_set_is_named),
        cmocka_unit_test(false_and_the_first_of_an_enum_are_values),
        cmocka_unit_test(the_server_makes_the_same_key_from_the_bytes),
        cmocka_unit_test(the_key_is_the_same_in_every_release),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
