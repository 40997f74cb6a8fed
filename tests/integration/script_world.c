#include "script_world.h"

#include <idem/call.h>

#include <stdlib.h>
#include <string.h>

#define BODY 100

struct player {
    struct idem_interceptor base;
    struct script_world *world;
};

void
script_must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

static enum idem_step
play(struct idem_interceptor *self, struct idem_call *call)
{
    static const uint8_t empty[1];
    struct script_world *world = ((struct player *)self)->world;
    const struct script *script = &world->script;

    atomic_fetch_add(&world->sends, 1);
    atomic_store(&world->deadline_ms, idem_call_remaining_ns(call) / 1000000);
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
add_player(struct script_world *world)
{
    static const struct idem_interceptor_ops ops = {
        .name = "script",
        .band = IDEM_BAND_ATTEMPT,
        .request = play,
        .free = release,
    };
    struct player *player = calloc(1, sizeof *player);
    struct idem_error err;

    assert_non_null(player);
    player->base.ops = &ops;
    player->world = world;
    script_must(idem_channel_add(world->channel, &player->base, &err), &err);
}

static void
init(struct script_world *world, const struct script *script)
{
    memset(world, 0, sizeof *world);
    world->script = *script;
}

void
script_world_open(struct script_world *world, const struct script *script,
                  const char *file, const char *environment)
{
    struct idem_policy_options policy = {.config_json = file,
                                         .ignore_environment = !environment};
    const struct idem_channel_options options = {.policy = &policy};
    struct idem_error err;

    init(world, script);
    if (environment)
        setenv("IDEM_SERVICE_CONFIG", environment, 1);
    script_must(
        idem_client_open(&world->channel, "inproc://nobody", &options, &err),
        &err);
    unsetenv("IDEM_SERVICE_CONFIG");
    add_player(world);
}

void
script_world_open_bare(struct script_world *world, const struct script *script)
{
    struct idem_error err;

    init(world, script);
    script_must(
        idem_channel_new(&world->channel, "inproc://nobody", NULL, &err), &err);
    add_player(world);
}

void
script_world_close(struct script_world *world)
{
    idem_channel_close(world->channel);
}

struct idem_method
script_method(bool keyed)
{
    struct idem_method method = echo_echo_method;

    method.retry =
        (struct idem_retry_policy){2, 1, 1, 1000, 1u << IDEM_UNAVAILABLE};
    if (keyed) {
        method.mode = IDEM_MODE_TRANSACTION;
        method.key_source = IDEM_KEY_MINTED;
        method.window_ms = 86400000;
    }
    return method;
}

enum idem_status
script_call(struct script_world *world, const struct idem_method *method,
            const struct idem_call_options *options,
            struct idem_outcome *outcome)
{
    uint8_t body[BODY] = {0};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    request.body.data = body;
    request.body.len = sizeof body;
    return idem_channel_call(world->channel, method, &request.base, NULL,
                             options, outcome);
}

void
script_assert_explains(struct script_world *world,
                       const struct idem_method *method, const char *text)
{
    char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);

    idem_channel_explain(world->channel, method, out);
    fclose(out);
    if (!strstr(printed, text))
        fail_msg("\"%s\" is not in:\n%s", text, printed);
    free(printed);
}
