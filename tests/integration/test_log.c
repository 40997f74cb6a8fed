/* The line of a call that is over: why it was not repeated, above all. */
#include "support.h"

#include "echo.idem.h"

#include <idem/call.h>
#include <idem/log.h>
#include <idem/policy.h>
#include <idem/standard.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(status) (1u << IDEM_##status)

/* --- The world: a channel whose server is a script --- */

struct script {
    struct idem_interceptor base;
    enum idem_status status;
    enum idem_effect effect;
    int64_t retry_after_ms;
    bool final;
    bool never; /* it does not answer at all */
    const char *reason, *message;
};

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

static enum idem_step
play(struct idem_interceptor *self, struct idem_call *call)
{
    static const uint8_t empty[1];
    const struct script *script = (struct script *)self;

    if (script->never)
        return idem_call_sleep(call, INT64_MAX / 2, IDEM_ANSWER) ? IDEM_WAIT
                                                                 : IDEM_ANSWER;
    idem_call_fail(call, script->status, script->effect, script->reason, "%s",
                   script->message ? script->message : "");
    call->outcome.retry_after_ms =
        script->retry_after_ms ? script->retry_after_ms : -1;
    call->outcome.final = script->final;
    if (script->status == IDEM_OK)
        call->reply = (struct idem_bytes){empty, 0};
    return IDEM_ANSWER;
}

static void
release(struct idem_interceptor *self)
{
    free(self);
}

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

static void
add_script(struct idem_channel *channel, const struct script *script)
{
    static const struct idem_interceptor_ops ops = {
        .name = "script",
        .band = IDEM_BAND_ATTEMPT,
        .request = play,
        .free = release,
    };
    struct script *own = malloc(sizeof *own);
    struct idem_error err;

    assert_non_null(own);
    *own = *script;
    own->base.ops = &ops;
    must(idem_channel_add(channel, &own->base, &err), &err);
}

static void
add_log(struct idem_channel *channel, struct idem_log_options options)
{
    struct idem_interceptor *log;
    struct idem_error err;

    options.line = hear;
    must(idem_log_new(&log, &options, &err), &err);
    must(idem_channel_add(channel, log, &err), &err);
}

static struct idem_channel *
open_channel(const char *config, const struct script *script,
             struct idem_log_options log)
{
    struct idem_policy_options policy = {.config_json = config,
                                         .ignore_environment = true};
    const struct idem_channel_options options = {.policy = &policy};
    struct idem_channel *channel;
    struct idem_error err;

    lines[0] = 0;
    must(idem_client_open(&channel, "inproc://nobody", &options, &err), &err);
    add_log(channel, log);
    add_script(channel, script);
    return channel;
}

/* Two attempts a millisecond apart, of what has a key or has none. */
static struct idem_method
method_of(bool keyed)
{
    struct idem_method method = echo_echo_method;

    method.retry = (struct idem_retry_policy){2, 1, 1, 1000, BIT(UNAVAILABLE)};
    if (keyed) {
        method.mode = IDEM_MODE_TRANSACTION;
        method.key_source = IDEM_KEY_MINTED;
        method.window_ms = 86400000;
    }
    return method;
}

static void
call_once(struct idem_channel *channel, const struct idem_method *method,
          const struct idem_call_options *options)
{
    uint8_t body[100] = {0};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    request.body.data = body;
    request.body.len = sizeof body;
    (void)idem_channel_call(channel, method, &request.base, NULL, options,
                            NULL);
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
        struct idem_method method = method_of(!row->unkeyed);
        struct idem_channel *channel = open_channel(
            row->config, &row->script, (struct idem_log_options){0});

        if (row->without_policy)
            method.retry = (struct idem_retry_policy){0};
        call_once(channel, &method, &options);
        assert_line("method=echo.v1.Echo/Echo status=");
        assert_line(row->line);
        idem_channel_close(channel);
    }
}

/* A reason that is added to the list wants a row above. */
static void
no_reason_is_forgotten(void **state)
{
    (void)state;
    for (unsigned stop = IDEM_STOP_OK; stop <= IDEM_STOP_BUDGET; stop++) {
        char text[40];
        bool found = false;

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
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    lines[0] = 0;
    must(idem_channel_new(&channel, "inproc://nobody", NULL, &err), &err);
    add_log(channel, (struct idem_log_options){0});
    add_script(channel, &script);
    call_once(channel, &echo_echo_method, NULL);
    assert_line("stop=UNASKED ");
    idem_channel_close(channel);
}

/* --- The rest of the line --- */

static void
a_key_is_in_it_as_its_hash_unless_it_is_wanted(void **state)
{
    const struct idem_call_options options = {.key = "order-\"7\""};
    const struct script script = {.status = IDEM_OK,
                                  .effect = IDEM_EFFECT_REPLAYED};
    const struct idem_method method = method_of(true);
    struct idem_channel *channel =
        open_channel(NULL, &script, (struct idem_log_options){0});

    (void)state;
    call_once(channel, &method, &options);
    /* printf 'order-"7"' | sha256sum */
    assert_line(" key_hash=eec18cac9c458fa8");
    assert_null(strstr(lines, "order-"));
    idem_channel_close(channel);

    channel =
        open_channel(NULL, &script, (struct idem_log_options){.keys = true});
    call_once(channel, &method, &options);
    assert_line(" key=\"order-\\\"7\\\"\"");
    idem_channel_close(channel);
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
    const struct idem_method method = method_of(true);
    struct idem_channel *channel =
        open_channel(NULL, &script, (struct idem_log_options){0});

    (void)state;
    call_once(channel, &method, NULL);
    assert_line(" reason=NO_ACCOUNT message=\"no \\\"anna\\\"\\nmethod=x\\\\ "
                "status=OK \"\n");
    idem_channel_close(channel);
}

static void
only_troubles_if_that_is_wanted(void **state)
{
    const struct script good = {.status = IDEM_OK,
                                .effect = IDEM_EFFECT_COMMITTED};
    const struct script bad = {FAILS};
    const struct idem_log_options troubles = {.troubles_only = true};
    const struct idem_method method = method_of(true);
    struct idem_channel *channel = open_channel(NULL, &good, troubles);

    (void)state;
    call_once(channel, &method, NULL);
    assert_string_equal(lines, "");
    idem_channel_close(channel);
    channel = open_channel(NULL, &bad, troubles);
    call_once(channel, &method, NULL);
    assert_line("status=UNAVAILABLE");
    idem_channel_close(channel);
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
    struct idem_error err;

    (void)state;
    lines[0] = 0;
    must(idem_server_open(&server, NULL, NULL, NULL, &err), &err);
    must(idem_log_new(&log, &options, &err), &err);
    must(idem_server_add(server, log, &err), &err);
    must(echo_register(server, &handlers, NULL, &err), &err);
    must(idem_server_listen(server, "inproc://log", &err), &err);
    must(idem_server_start(server, &err), &err);
    must(idem_client_open(&channel, "inproc://log", NULL, &err), &err);
    call_once(channel, &echo_echo_method, NULL);
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
