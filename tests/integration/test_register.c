/* What a server says of services that cannot stand beside each other. */
#include "support.h"

#include <idem/interceptor.h>
#include <idem/server.h>

#include <string.h>

static void
keep(struct idem_interceptor *self)
{
    (void)self;
}

/* Stands for once, which effects need. */
static const struct idem_interceptor_ops once_ops = {
    .name = "once", .band = IDEM_BAND_KEY, .free = keep};

static enum idem_status
never(const void *handlers, struct idem_context *context,
      const struct ProtobufCMessage *request, struct ProtobufCMessage *reply)
{
    (void)handlers;
    (void)context;
    (void)request;
    (void)reply;
    return IDEM_INTERNAL;
}

/* A service of one method, whose records have the scope. */
static enum idem_status
add(struct idem_server *server, struct idem_service *service,
    struct idem_method *method, struct idem_error *err)
{
    method->scope = "pay.Pay/Charge";
    method->invoke = never;
    method->mode = IDEM_MODE_LEASED;
    service->methods = method;
    service->n_methods = 1;
    return idem_server_register(server, service, "", 0, NULL, err);
}

/* Fault 62: an alias of one file is the name, or the alias, in another. */
static void
two_methods_with_one_scope_are_refused(void **state)
{
    struct idem_interceptor once = {.ops = &once_ops};
    struct idem_method old = {.name = "pay.Pay/Charge"};
    struct idem_method renamed = {.name = "pay.v2.Pay/Charge"};
    struct idem_service one = {.name = "pay.Pay"}, two = {.name = "pay.v2.Pay"};
    struct idem_server *server = NULL;
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_server_new(&server, NULL, &err), IDEM_OK);
    assert_int_equal(idem_server_add(server, &once, &err), IDEM_OK);
    assert_int_equal(add(server, &one, &old, &err), IDEM_OK);
    assert_int_equal(add(server, &two, &renamed, &err), IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "pay.v2.Pay/Charge and pay.Pay/Charge "
                                        "have the scope"));
    old.shares_keys = renamed.shares_keys = true;
    assert_int_equal(add(server, &two, &renamed, &err), IDEM_OK);
    idem_server_free(server);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_methods_with_one_scope_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
