/* The line of a call that is over: why it was not repeated, above all. */
#include "script_world.h"

#include <idem/log.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* --- What is written --- */

static char lines[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
hear(void *with, const char *line)
{
    (void)with;
    pthread_mutex_lock(&lock);
    strcat(strcat(lines, line), "\n");
    pthread_mutex_unlock(&lock);
}

static void
add_log(struct idem_channel *channel, struct idem_log_options options)
{
    struct idem_interceptor *log;
    struct idem_error err;

    options.line = hear;
    script_must(idem_log_new(&log, &options, &err), &err);
    script_must(idem_channel_add(channel, log, &err), &err);
}

static void
open_world(struct script_world *world, const struct script *script,
           const char *config, struct idem_log_options log)
{
    lines[0] = 0;
    script_world_open(world, script, config, NULL);
    add_log(world->channel, log);
}

static void
assert_line(const char *text)
{
    if (!strstr(lines, text))
        fail_msg("\"%s\" is not in:\n%s", text, lines);
    if (strchr(lines, '\n') != strrchr(lines, '\n'))
        fail_msg("more than one line:\n%s", lines);
}

/* --- Each reason --- */

#define FAILS .status = IDEM_UNAVAILABLE, .effect = IDEM_EFFECT_ROLLED_BACK

struct row {
    const char *config; /* NULL: none */
    struct script script;
    bool unkeyed, without_policy;
    int64_t timeout_ms;
    const char *line;
};

static const struct row rows[] = {
    {.script = {.status = IDEM_OK, .effect = IDEM_EFFECT_COMMITTED},
     .line = "status=OK effect=COMMITTED stop=OK attempts=0 ms="},
    {.script = {.never = true},
     .timeout_ms = 20,
     .line = "status=DEADLINE_EXCEEDED effect=NOT_SENT stop=INTERRUPTED "},
    {.script = {FAILS},
     .unkeyed = true,
     .without_policy = true,
     .line = "status=UNAVAILABLE effect=ROLLED_BACK stop=NO_POLICY "},
    {.script = {FAILS, .retry_after_ms = IDEM_RETRY_NEVER},
     .line = "stop=PUSHBACK "},
    {.script = {.status = IDEM_NOT_FOUND,
                .effect = IDEM_EFFECT_ROLLED_BACK,
                .final = true},
     .line = "status=NOT_FOUND effect=ROLLED_BACK stop=FINAL "},
    {.script = {.status = IDEM_ABORTED, .effect = IDEM_EFFECT_ROLLED_BACK},
     .line = "status=ABORTED effect=ROLLED_BACK stop=STATUS "},
    {.config = "{\"retryThrottling\": {\"maxTokens\": 1, \"tokenRatio\": 1}}",
     .script = {FAILS},
     .line = "stop=THROTTLED "},
    {.script = {.status = IDEM_UNAVAILABLE, .effect = IDEM_EFFECT_IN_DOUBT},
     .unkeyed = true,
     .line = "status=UNAVAILABLE effect=IN_DOUBT stop=IN_DOUBT "},
    {.config = "{\"methodConfig\": [{\"name\": [{}], \"maxRetryBytes\": 50,"
               " \"overRetryBytes\": \"SEND_ONCE\"}]}",
     .script = {FAILS},
     .line = "stop=BUFFER "},
    {.script = {FAILS}, .line = "stop=ATTEMPTS "},
    {.config = "{\"methodConfig\": [{\"name\": [{}], \"attemptTimeout\":"
               " \"9s\"}]}",
     .script = {FAILS},
     .line = "stop=ATTEMPTS "},
    {.script = {FAILS, .retry_after_ms = 60000},
     .timeout_ms = 5000,
     .line = "status=DEADLINE_EXCEEDED effect=ROLLED_BACK stop=DEADLINE "
             "attempts=0 last=UNAVAILABLE ms="},
    {.config = "{\"retryBudget\": {\"ratio\": 0.001, \"floor\": 0}}",
     .script = {FAILS},
     .line = "stop=BUDGET "},
};

static void
the_line_of_a_call_says_why_it_was_not_repeated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        const struct idem_call_options options = {.timeout_ms =
                                                      row->timeout_ms};
        struct idem_method method = script_method(!row->unkeyed);
        struct script_world world;

        open_world(&world, &row->script, row->config,
                   (struct idem_log_options){0});

        if (row->without_policy)
            method.retry = (struct idem_retry_policy){0};
        (void)script_call(&world, &method, &options, NULL);
        assert_line("method=echo.v1.Echo/Echo status=");
        assert_line(row->line);
        script_world_close(&world);
    }
}

/* A reason that is added to the list wants a row above. */
static void
no_reason_is_forgotten(void **state)
{
    (void)state;
    for (unsigned stop = IDEM_STOP_OK; stop <= IDEM_STOP_BUDGET; stop++) {
        char text[40];
        /* Of streams: test_stream_retry. */
        bool found = stop == IDEM_STOP_COMMITTED;

        snprintf(text, sizeof text, "stop=%s ",
                 idem_stop_name((enum idem_stop)stop));
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            found |= strstr(rows[i].line, text) != NULL;
        if (!found)
            fail_msg("no row has %s", text);
    }
    assert_string_equal(idem_stop_name((enum idem_stop)(IDEM_STOP_BUDGET + 1)),
                        "UNKNOWN");
}

static void
a_chain_without_retry_has_nobody_who_decides(void **state)
{
    const struct script script = {FAILS};
    struct script_world world;

    (void)state;
    lines[0] = 0;
    script_world_open_bare(&world, &script);
    add_log(world.channel, (struct idem_log_options){0});
    (void)script_call(&world, &echo_echo_method, NULL, NULL);
    assert_line("stop=UNASKED ");
    script_world_close(&world);
}

/* --- The rest of the line --- */

static void
a_key_is_in_it_as_its_hash_unless_it_is_wanted(void **state)
{
    const struct idem_call_options options = {.key = "order-\"7\""};
    const struct script script = {.status = IDEM_OK,
                                  .effect = IDEM_EFFECT_REPLAYED};
    const struct idem_method method = script_method(true);
    struct script_world world;

    (void)state;
    open_world(&world, &script, NULL, (struct idem_log_options){0});
    (void)script_call(&world, &method, &options, NULL);
    /* printf 'order-"7"' | sha256sum */
    assert_line(" key_hash=eec18cac9c458fa8");
    assert_null(strstr(lines, "order-"));
    script_world_close(&world);

    open_world(&world, &script, NULL, (struct idem_log_options){.keys = true});
    (void)script_call(&world, &method, &options, NULL);
    assert_line(" key=\"order-\\\"7\\\"\"");
    script_world_close(&world);
}

/* A server's words begin no line of their own. */
static void
what_a_peer_says_stays_inside_its_quotes(void **state)
{
    const struct script script = {.status = IDEM_NOT_FOUND,
                                  .effect = IDEM_EFFECT_ROLLED_BACK,
                                  .reason = "NO_ACCOUNT",
                                  .message =
                                      "no \"anna\"\nmethod=x\\\tstatus=OK\x01"};
    const struct idem_method method = script_method(true);
    struct script_world world;

    (void)state;
    open_world(&world, &script, NULL, (struct idem_log_options){0});
    (void)script_call(&world, &method, NULL, NULL);
    assert_line(" reason=NO_ACCOUNT message=\"no \\\"anna\\\"\\nmethod=x\\\\ "
                "status=OK \"\n");
    script_world_close(&world);
}

static void
only_troubles_if_that_is_wanted(void **state)
{
    const struct script good = {.status = IDEM_OK,
                                .effect = IDEM_EFFECT_COMMITTED};
    const struct script bad = {FAILS};
    const struct idem_log_options troubles = {.troubles_only = true};
    const struct idem_method method = script_method(true);
    struct script_world world;

    (void)state;
    open_world(&world, &good, NULL, troubles);
    (void)script_call(&world, &method, NULL, NULL);
    assert_string_equal(lines, "");
    script_world_close(&world);
    open_world(&world, &bad, NULL, troubles);
    (void)script_call(&world, &method, NULL, NULL);
    assert_line("status=UNAVAILABLE");
    script_world_close(&world);
}

static void
a_log_without_a_reader_is_refused(void **state)
{
    const struct idem_log_options options = {0};
    struct idem_interceptor *log;
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_log_new(&log, &options, &err), IDEM_INVALID_ARGUMENT);
    assert_int_equal(idem_log_new(&log, NULL, &err), IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the log has nobody to tell its lines");
}

/* --- A server's --- */

static enum idem_status
answer(struct idem_context *context, const echo_echo_request *request,
       echo_echo_reply *reply)
{
    (void)request;
    (void)reply;
    return idem_context_fail(context, IDEM_NOT_FOUND, "no such echo");
}

static void
a_server_writes_the_attempts_number(void **state)
{
    static const struct echo_handlers handlers = {.echo = answer};
    const struct idem_log_options options = {.line = hear};
    struct idem_interceptor *log;
    struct idem_server *server;
    struct idem_channel *channel;
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct idem_error err;

    (void)state;
    lines[0] = 0;
    script_must(idem_server_open(&server, NULL, NULL, NULL, &err), &err);
    script_must(idem_log_new(&log, &options, &err), &err);
    script_must(idem_server_add(server, log, &err), &err);
    script_must(echo_register(server, &handlers, NULL, &err), &err);
    script_must(idem_server_listen(server, "inproc://log", &err), &err);
    script_must(idem_server_start(server, &err), &err);
    script_must(idem_client_open(&channel, "inproc://log", NULL, &err), &err);
    (void)echo_echo(channel, &request, NULL, NULL, NULL);
    idem_channel_close(channel);
    idem_server_free(server);
    assert_line("method=echo.v1.Echo/Echo status=NOT_FOUND effect=ROLLED_BACK "
                "attempt=1 ms=");
    assert_line(" message=\"no such echo\"\n");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_of_a_call_says_why_it_was_not_repeated),
        cmocka_unit_test(no_reason_is_forgotten),
        cmocka_unit_test(a_chain_without_retry_has_nobody_who_decides),
        cmocka_unit_test(a_key_is_in_it_as_its_hash_unless_it_is_wanted),
        cmocka_unit_test(what_a_peer_says_stays_inside_its_quotes),
        cmocka_unit_test(only_troubles_if_that_is_wanted),
        cmocka_unit_test(a_log_without_a_reader_is_refused),
        cmocka_unit_test(a_server_writes_the_attempts_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
