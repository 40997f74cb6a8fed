#include "key_command.h"

#include "key_options.h"
#include "place.h"

#include <idem/operator.h>
#include <idem/reason.h>
#include <idem/standard.h>

#include <stdio.h>
#include <string.h>

#define EXIT_NOT_WELL 1
#define EXIT_USAGE 2
#define NS_PER_MS 1000000

/* Of --reply: larger ones no server would have stored. */
#define REPLY_MAX ((size_t)4 << 20)

static void
print_reply(struct idem_bytes reply)
{
    printf("reply     %zu bytes", reply.size);
    if (reply.size > 0)
        printf(": ");
    for (size_t i = 0; i < reply.size; i++)
        printf("%02x", reply.data[i]);
    printf("\n");
}

static void
print(const struct idem_resolution *resolution)
{
    printf("state     %s\nmeaning   %s\n",
           idem_resolved_name(resolution->state),
           idem_resolved_text(resolution->state));
    if (resolution->lease_ms > 0)
        printf("lease-ms  %lld\n", (long long)resolution->lease_ms);
    if (resolution->first_at_ms > 0)
        printf("first-at  %lld ms since 1970\n",
               (long long)resolution->first_at_ms);
    if (resolution->state != IDEM_RESOLVED_DONE)
        return;
    printf("status    %s\n", idem_status_name(resolution->status));
    if (resolution->status == IDEM_OK)
        print_reply(resolution->reply);
    if (resolution->reason[0])
        printf("reason    %s\n", resolution->reason);
    if (resolution->message[0])
        printf("message   %s\n", resolution->message);
}

static enum idem_status
ask_server(const struct key_options *options,
           struct idem_resolution *resolution, struct idem_error *err)
{
    const struct idem_method method = {.name = options->method};
    struct idem_channel *channel;
    enum idem_status status =
        idem_client_open(&channel, options->server, NULL, err);

    if (status != IDEM_OK)
        return status;
    if (strcmp(options->command, "abandon") == 0)
        status = idem_abandon(channel, &method, options->key,
                              options->timeout_ms, resolution, err);
    else
        status = idem_resolve(channel, &method, options->key,
                              options->timeout_ms, resolution, err);
    idem_channel_close(channel);
    return status;
}

/* The file's bytes, into a buffer of REPLY_MAX + 1. */
static enum idem_status
read_reply(const char *path, uint8_t *buffer, size_t *size,
           struct idem_error *err)
{
    FILE *file = fopen(path, "rb");
    bool ok = file != NULL;

    if (file) {
        *size = fread(buffer, 1, REPLY_MAX + 1, file);
        ok = !ferror(file) && *size <= REPLY_MAX;
        fclose(file);
    }
    return ok ? IDEM_OK
              : idem_fail(err, IDEM_INVALID_ARGUMENT,
                          "%s: cannot be read, or is over 4 MiB", path);
}

/* What repeats are answered when nobody knows the reply itself. */
static const struct idem_answer unknown_reply = {
    .status = IDEM_ALREADY_EXISTS,
    .reason = {(const uint8_t *)IDEM_ANSWER_DROPPED,
               sizeof IDEM_ANSWER_DROPPED - 1},
    .message = {(const uint8_t *)"it took effect; its reply is not known", 38},
};

static struct idem_answer
answer_of(const struct key_options *options)
{
    struct idem_answer answer = {.status = options->status};

    if (!options->has_status && !options->reply)
        answer = unknown_reply;
    if (options->message)
        answer.message = idem_bytes_of(options->message);
    return answer;
}

static enum idem_status
settle(struct idem_store *store, const struct idem_operator_key *key,
       const struct key_options *options, struct idem_resolution *resolution,
       struct idem_error *err)
{
    static uint8_t reply[REPLY_MAX + 1];
    const struct idem_settlement settlement = {
        .took_effect = options->took_effect,
        .by = idem_bytes_of(options->by),
        .why = idem_bytes_of(options->why),
    };
    struct idem_answer answer = answer_of(options);
    enum idem_status status = IDEM_OK;

    answer.reply.data = reply;
    if (options->reply)
        status = read_reply(options->reply, reply, &answer.reply.size, err);
    if (status != IDEM_OK)
        return status;
    return idem_operator_settle(store, key, &settlement, &answer, resolution,
                                err);
}

static enum idem_status
ask_store(const struct key_options *options, struct idem_resolution *resolution,
          struct idem_error *err)
{
    const struct idem_clock *clock = idem_clock_system();
    const struct idem_operator_key key = {
        .tenant = options->tenant,
        .method = options->method,
        .key = options->key,
        .deadline_ns =
            clock->monotonic_ns(clock) + options->timeout_ms * NS_PER_MS,
    };
    struct idem_store *store;
    enum idem_status status =
        place_open(&store, options->postgres, options->sqlite, err);

    if (status != IDEM_OK)
        return status;
    if (strcmp(options->command, "resolve") == 0)
        status = idem_operator_resolve(store, &key, resolution, err);
    else if (strcmp(options->command, "abandon") == 0)
        status = idem_operator_abandon(store, &key, resolution, err);
    else
        status = settle(store, &key, options, resolution, err);
    idem_store_free(store);
    return status;
}

bool
key_command_is(const char *name)
{
    return strcmp(name, "resolve") == 0 || strcmp(name, "abandon") == 0 ||
           strcmp(name, "settle") == 0;
}

int
key_command_run(int argc, char **argv)
{
    struct idem_resolution resolution = {0};
    struct key_options options;
    struct idem_error err;
    enum idem_status status;

    if (!key_options_parse(&options, argc, argv))
        return EXIT_USAGE;
    status = options.server ? ask_server(&options, &resolution, &err)
                            : ask_store(&options, &resolution, &err);
    if (resolution.state)
        print(&resolution);
    idem_resolution_fini(&resolution);
    if (status == IDEM_OK)
        return 0;
    fprintf(stderr, "idemctl %s: %s: %s\n", options.command,
            idem_status_name(status), err.message);
    return EXIT_NOT_WELL;
}
