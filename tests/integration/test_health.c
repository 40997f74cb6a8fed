/* grpc.health.v1.Health: what it says of a server, of its services, of an
 * authority that is away, of a server that drains. */
#include "support.h"

#include "child.h"
#include "echo.idem.h"
#include "effects.h"
#include "postgres.h"
#include "tempdir.h"
#include "wire_client.h"

#include <idem/health.h>
#include <idem/postgres.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <idem/v1/health.idem.h>

#include <stdio.h>
#include <string.h>

#define SERVING IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_SERVING
#define NOT_SERVING IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_NOT_SERVING
#define EFFECTS "effects.v1.Effects"
#define ECHO "echo.v1.Echo"

struct ward {
    struct tempdir dir;
    struct effects effects;
    struct idem_server *server;
    struct idem_channel *channel;
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

static void
serve(struct ward *ward)
{
    const struct echo_handlers nothing = {0};
    struct idem_error err;

    must(
        effects_register(ward->server, &effects_handlers, &ward->effects, &err),
        &err);
    must(echo_register(ward->server, &nothing, NULL, &err), &err);
    must(idem_server_listen(ward->server, "tcp://127.0.0.1:0", &err), &err);
    must(idem_server_start(ward->server, &err), &err);
    must(idem_client_open(&ward->channel, idem_server_address(ward->server, 0),
                          NULL, &err),
         &err);
}

static void
open_ward(struct ward *ward)
{
    char books[TEMPDIR_MAX + 32];
    struct idem_sqlite_options sqlite = {.schema = EFFECTS_SCHEMA};
    struct idem_store *store;
    struct idem_error err;

    tempdir_open(&ward->dir);
    effects_init(&ward->effects, NULL);
    sqlite.path = tempdir_file(&ward->dir, "books.db", books, sizeof books);
    must(idem_sqlite_open(&store, &sqlite, &err), &err);
    must(idem_server_open(&ward->server, store, NULL, NULL, &err), &err);
    serve(ward);
}

static void
close_ward(struct ward *ward)
{
    idem_channel_close(ward->channel);
    idem_server_free(ward->server);
    effects_fini(&ward->effects);
    tempdir_close(&ward->dir);
}

static enum idem_status
check(struct ward *ward, const char *service, unsigned *said)
{
    idem_health_health_check_request request =
        IDEM_HEALTH_HEALTH_CHECK_REQUEST_INIT;
    idem_health_health_check_response *reply = NULL;
    enum idem_status status;

    request.service = service;
    status = idem_health_check(ward->channel, &request, &reply, NULL, NULL);
    *said = reply ? (unsigned)reply->status : 0;
    idem_health_health_check_response_free(reply);
    return status;
}

static void
assert_says(struct ward *ward, const char *service, unsigned what)
{
    unsigned said;

    assert_int_equal(check(ward, service, &said), IDEM_OK);
    assert_int_equal(said, what);
}

static void
a_server_says_how_it_and_its_services_are(void **state)
{
    struct ward ward = {0};
    unsigned said;

    (void)state;
    open_ward(&ward);
    assert_string_equal(idem_server_chain(ward.server),
                        "health > allow > deadline > limit > validate > once");
    assert_says(&ward, "", SERVING);
    assert_says(&ward, EFFECTS, SERVING);
    assert_says(&ward, ECHO, SERVING);
    assert_says(&ward, "grpc.health.v1.Health", SERVING);
    assert_int_equal(check(&ward, "effects.v1.Nothing", &said), IDEM_NOT_FOUND);
    close_ward(&ward);
}

static unsigned
listed(const idem_health_health_list_response *reply, const char *name)
{
    for (size_t i = 0; i < reply->n_statuses; i++)
        if (strcmp(reply->statuses[i]->key, name) == 0)
            return (unsigned)reply->statuses[i]->value->status;
    return 0;
}

static void
it_lists_all_that_there_are(void **state)
{
    static const idem_health_health_list_request request =
        IDEM_HEALTH_HEALTH_LIST_REQUEST_INIT;
    idem_health_health_list_response *reply = NULL;
    struct ward ward = {0};

    (void)state;
    open_ward(&ward);
    assert_int_equal(
        idem_health_list(ward.channel, &request, &reply, NULL, NULL), IDEM_OK);
    assert_int_equal(reply->n_statuses, 5);
    assert_int_equal(listed(reply, ""), SERVING);
    assert_int_equal(listed(reply, EFFECTS), SERVING);
    assert_int_equal(listed(reply, ECHO), SERVING);
    assert_int_equal(listed(reply, "idem.v1.Ledger"), SERVING);
    assert_int_equal(listed(reply, "grpc.health.v1.Health"), SERVING);
    idem_health_health_list_response_free(reply);
    close_ward(&ward);
}

/* On a connection that does not go although it was told to. */
static unsigned
ask_by_hand(struct wire *wire, uint32_t stream)
{
    const struct header_open open = {
        .method = idem_bytes_of(IDEM_HEALTH_CHECK_METHOD)};
    const struct idem_bytes nothing = {(const uint8_t *)"", 0};
    struct frame frame;
    struct header_end end;

    wire_open(wire, stream, &open, nothing);
    do
        assert_true(wire_next(wire, &frame));
    while (frame.type != FRAME_END);
    assert_true(header_end_read(frame.header, &end));
    assert_int_equal(end.status, IDEM_OK);
    assert_int_equal(frame.payload.size, 2);
    assert_int_equal(frame.payload.data[0], 1 << 3);
    return frame.payload.data[1];
}

static void
a_server_that_drains_says_so(void **state)
{
    const struct header_open other = {.method =
                                          idem_bytes_of(EFFECTS_COUNT_METHOD)};
    struct ward ward = {0};
    struct wire wire;

    (void)state;
    open_ward(&ward);
    wire_connect(&wire, idem_server_address(ward.server, 0));
    wire_hello(&wire, 0);
    assert_int_equal(ask_by_hand(&wire, 1), SERVING);
    idem_server_drain(ward.server);
    assert_int_equal(ask_by_hand(&wire, 2), NOT_SERVING);
    wire_open(&wire, 3, &other, (struct idem_bytes){(const uint8_t *)"", 0});
    assert_int_equal(wire_end(&wire, 3).status, IDEM_UNAVAILABLE);
    wire_close(&wire);
    close_ward(&ward);
}

/* --- Watch --- */

static struct idem_health_watch_stream *
watch(struct ward *ward, const char *service)
{
    const struct idem_call_options options = {.timeout_ms = 60000};
    idem_health_health_check_request request =
        IDEM_HEALTH_HEALTH_CHECK_REQUEST_INIT;

    request.service = service;
    return idem_health_watch_open(ward->channel, &request, &options);
}

static void
assert_next(struct idem_health_watch_stream *stream, unsigned what)
{
    const idem_health_health_check_response *reply =
        idem_health_watch_next(stream);

    assert_non_null(reply);
    assert_int_equal(reply->status, what);
}

/* A stop does not wait for those who watch. */
static void
a_watch_tells_of_the_end_and_ends(void **state)
{
    struct idem_health_watch_stream *streams[3];
    const struct idem_clock *clock = idem_clock_system();
    struct ward ward = {0};
    struct idem_outcome outcome;
    int64_t from_ns;

    (void)state;
    open_ward(&ward);
    streams[0] = watch(&ward, "");
    streams[1] = watch(&ward, EFFECTS);
    streams[2] = watch(&ward, "effects.v1.Nothing");
    assert_next(streams[0], SERVING);
    assert_next(streams[1], SERVING);
    assert_next(
        streams[2],
        IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_SERVICE_UNKNOWN);
    from_ns = clock->monotonic_ns(clock);
    idem_server_stop(ward.server);
    assert_in_range((clock->monotonic_ns(clock) - from_ns) / 1000000, 0, 5000);
    assert_next(streams[0], NOT_SERVING);
    assert_next(streams[1], NOT_SERVING);
    for (unsigned i = 0; i < 3; i++) {
        assert_null(idem_health_watch_next(streams[i]));
        assert_int_equal(idem_health_watch_finish(streams[i], &outcome),
                         IDEM_UNAVAILABLE);
    }
    close_ward(&ward);
}

static void
a_watcher_that_goes_leaves_nothing(void **state)
{
    struct ward ward = {0};
    struct idem_outcome outcome;

    (void)state;
    open_ward(&ward);
    for (unsigned i = 0; i < 50; i++) {
        struct idem_health_watch_stream *stream = watch(&ward, "");

        if (i % 2)
            assert_next(stream, SERVING);
        idem_health_watch_cancel(stream);
        assert_int_equal(idem_health_watch_finish(stream, &outcome),
                         IDEM_CANCELLED);
    }
    close_ward(&ward);
}

/* --- The authority is away --- */

static bool
says_not_serving(void *with)
{
    unsigned said;

    return check(with, EFFECTS, &said) == IDEM_OK && said == NOT_SERVING;
}

static bool
says_serving(void *with)
{
    unsigned said;

    return check(with, EFFECTS, &said) == IDEM_OK && said == SERVING;
}

static void
open_on_postgres(struct ward *ward, struct postgres *postgres)
{
    const struct idem_health_options soon = {.interval_ms = 20,
                                             .timeout_ms = 500};
    struct idem_postgres_options options = {
        .conninfo = postgres_conninfo(postgres),
        .connections = POSTGRES_FEW_CONNECTIONS};
    struct idem_interceptor *once;
    struct idem_store *store;
    struct idem_error err;

    tempdir_open(&ward->dir);
    effects_init(&ward->effects, NULL);
    must(idem_postgres_migrate(options.conninfo, NULL, &err), &err);
    must(idem_postgres_open(&store, &options, &err), &err);
    must(idem_server_new(&ward->server, NULL, &err), &err);
    must(idem_once_new(&once, store, NULL, &err), &err);
    must(idem_server_add(ward->server, once, &err), &err);
    must(idem_health_add(ward->server, store, &soon, &err), &err);
    serve(ward);
}

static void
while_the_authority_is_away_services_that_record_are_not_served(void **state)
{
    struct postgres *postgres = postgres_start(NULL);
    struct idem_health_watch_stream *stream;
    struct ward ward = {0};
    struct idem_outcome outcome;

    (void)state;
    open_on_postgres(&ward, postgres);
    assert_true(child_wait_until(says_serving, &ward, 10000));
    stream = watch(&ward, EFFECTS);
    assert_next(stream, SERVING);
    postgres_kill(postgres);
    assert_next(stream, NOT_SERVING);
    assert_true(child_wait_until(says_not_serving, &ward, 20000));
    assert_says(&ward, ECHO, SERVING);
    assert_says(&ward, "", SERVING);
    postgres_restart(postgres);
    assert_next(stream, SERVING);
    idem_health_watch_cancel(stream);
    assert_int_equal(idem_health_watch_finish(stream, &outcome),
                     IDEM_CANCELLED);
    assert_true(child_wait_until(says_serving, &ward, 20000));
    postgres_freeze(postgres);
    assert_true(child_wait_until(says_not_serving, &ward, 20000));
    postgres_thaw(postgres);
    assert_true(child_wait_until(says_serving, &ward, 20000));
    close_ward(&ward);
    postgres_free(postgres);
}

static void
times_that_cannot_be_are_refused_by_name(void **state)
{
    const struct idem_health_options never = {.interval_ms = -1};
    const struct idem_health_options long_ago = {.timeout_ms = 86400001};
    struct idem_server *server;
    struct idem_error err;

    (void)state;
    must(idem_server_new(&server, NULL, &err), &err);
    assert_int_equal(idem_health_add(server, NULL, &never, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "interval_ms is -1"));
    assert_int_equal(idem_health_add(server, NULL, &long_ago, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "timeout_ms is 86400001"));
    idem_server_free(server);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_says_how_it_and_its_services_are),
        cmocka_unit_test(it_lists_all_that_there_are),
        cmocka_unit_test(a_server_that_drains_says_so),
        cmocka_unit_test(a_watch_tells_of_the_end_and_ends),
        cmocka_unit_test(a_watcher_that_goes_leaves_nothing),
        cmocka_unit_test(
            while_the_authority_is_away_services_that_record_are_not_served),
        cmocka_unit_test(times_that_cannot_be_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
