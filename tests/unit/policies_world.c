#include "policies_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct idem_method charge = {
    .name = "pay.Pay/Charge",
    .mode = IDEM_MODE_TRANSACTION,
    .key_source = IDEM_KEY_MINTED,
    .window_ms = 86400000,
    .retry = {4, 100, 2000, 2000, 1u << IDEM_UNAVAILABLE},
};
const struct idem_method notify = {
    .name = "pay.Pay/Notify",
    .mode = IDEM_MODE_NONE,
};
static const struct idem_method methods[] = {
    {.name = "pay.Pay/Notify", .mode = IDEM_MODE_NONE},
};
static const struct idem_service service = {
    .name = "pay.Pay", .methods = methods, .n_methods = 1};
const struct idem_service *const services[1] = {&service};

/* What was reported, by any thread. */
struct ear {
    pthread_mutex_t lock;
    pthread_cond_t heard;
    char lines[8192];
    unsigned count;
};

static struct ear ear = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                         "", 0};

void
policies_hear(void *with, const char *line)
{
    (void)with;
    pthread_mutex_lock(&ear.lock);
    strcat(strcat(ear.lines, line), "\n");
    ear.count++;
    pthread_cond_broadcast(&ear.heard);
    pthread_mutex_unlock(&ear.lock);
}

void
policies_await_line(const char *text)
{
    struct timespec until;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 30;
    pthread_mutex_lock(&ear.lock);
    while (result == 0 && !strstr(ear.lines, text))
        result = pthread_cond_clockwait(&ear.heard, &ear.lock, CLOCK_MONOTONIC,
                                        &until);
    if (result != 0)
        fail_msg("\"%s\" is not in:\n%s", text, ear.lines);
    ear.lines[0] = 0;
    ear.count = 0;
    pthread_mutex_unlock(&ear.lock);
}

unsigned
policies_lines_heard(void)
{
    unsigned count;

    pthread_mutex_lock(&ear.lock);
    count = ear.count;
    pthread_mutex_unlock(&ear.lock);
    return count;
}

static struct idem_channel *
open_channel(const char *target, struct idem_channel_options options,
             struct idem_policy_options policy)
{
    struct idem_channel *channel;
    struct idem_error err;

    ear.lines[0] = 0;
    ear.count = 0;
    if (!policy.report)
        policy.report = policies_hear;
    options.policy = &policy;
    if (idem_client_open(&channel, target, &options, &err) != IDEM_OK)
        fail_msg("%s", err.message);
    return channel;
}

struct idem_channel *
policies_channel(struct idem_policy_options policy)
{
    return open_channel("inproc://nobody", (struct idem_channel_options){0},
                        policy);
}

struct idem_channel *
policies_round_robin(struct idem_policy_options policy)
{
    return open_channel(
        "list://inproc://nobody,inproc://no",
        (struct idem_channel_options){.balancer = IDEM_BALANCER_ROUND_ROBIN},
        policy);
}

void
policies_assert_explains(struct idem_channel *channel,
                         const struct idem_method *method, const char *text)
{
    char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);

    idem_channel_explain(channel, method, out);
    fclose(out);
    if (!strstr(printed, text))
        fail_msg("\"%s\" is not in:\n%s", text, printed);
    free(printed);
}

void
policies_write(const struct tempdir *folder, const char *path, const char *text)
{
    char draft[TEMPDIR_MAX + 16];
    FILE *file;

    tempdir_file(folder, "draft", draft, sizeof draft);
    file = fopen(draft, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(draft, path), 0);
}
