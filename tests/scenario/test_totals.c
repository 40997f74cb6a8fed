/* services/examples/totals.c: a handler that answers when others have. */
#include "support.h"

#include "payments_world.h"
#include "totals.h"

#include <stdio.h>
#include <string.h>

struct totals {
    struct payments_world *payments;
    struct idem_server *server;
    struct idem_channel *channel;
};

static struct totals totals;

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s", err->message);
}

/* One worker: a handler that held it would stop all others. */
static int
open_totals(void **state)
{
    const struct idem_server_options options = {.workers = 1};
    struct idem_error err;
    void *payments;

    (void)state;
    payments_world_open(&payments);
    totals.payments = payments;
    must(idem_server_open(&totals.server, NULL, &options, NULL, &err), &err);
    must(totals_register(totals.server, &totals_handlers_of_payments,
                         totals.payments->channel, &err),
         &err);
    must(idem_server_listen(totals.server, "inproc://totals", &err), &err);
    must(idem_server_start(totals.server, &err), &err);
    must(idem_client_open(&totals.channel, "inproc://totals", NULL, &err),
         &err);
    return 0;
}

static int
close_totals(void **state)
{
    void *payments = totals.payments;

    (void)state;
    idem_channel_close(totals.channel);
    idem_server_free(totals.server);
    payments_world_close(&payments);
    return 0;
}

static enum idem_status
sum(const char **accounts, size_t n, int64_t *total,
    struct idem_outcome *outcome)
{
    const struct idem_call_options options = {.timeout_ms = 20000};
    totals_sum_request request = TOTALS_SUM_REQUEST_INIT;
    totals_sum_reply *reply = NULL;
    enum idem_status status;

    request.accounts = accounts;
    request.n_accounts = n;
    status = totals_sum(totals.channel, &request, &reply, &options, outcome);
    if (status == IDEM_OK)
        *total = reply->total;
    totals_sum_reply_free(reply);
    return status;
}

static void
the_sum_is_there_when_the_last_account_is(void **state)
{
    const char *accounts[] = {"a", "b", "c"};
    struct idem_outcome outcome;
    int64_t total = -1;

    (void)state;
    world_open(totals.payments, "a", 100);
    world_open(totals.payments, "b", 20);
    world_open(totals.payments, "c", 3);
    assert_int_equal(sum(accounts, 3, &total, &outcome), IDEM_OK);
    assert_int_equal(total, 123);
    assert_int_equal(sum(accounts, 0, &total, &outcome), IDEM_OK);
    assert_int_equal(total, 0);
}

static void
one_account_that_is_missing_fails_the_call(void **state)
{
    const char *accounts[] = {"a", "nobody"};
    struct idem_outcome outcome;
    int64_t total;

    (void)state;
    world_open(totals.payments, "a", 100);
    assert_int_equal(sum(accounts, 2, &total, &outcome), IDEM_UNAVAILABLE);
    assert_string_equal(outcome.message, "an account could not be read");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, open_totals, close_totals)
        TEST(the_sum_is_there_when_the_last_account_is),
        TEST(one_account_that_is_missing_fails_the_call),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
