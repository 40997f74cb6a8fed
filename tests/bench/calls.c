#include "calls.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idem/key.h>

#include "side.h"

#define KEYS 64
#define DAY_MS INT64_C(86400000)

/* Written by calls_prepare, read by every call. */
static uint8_t body[SIDE_BODY_MAX];
static size_t body_size, reply_size;
static uint32_t reply_asked;

/* Written by calls_mix. */
static atomic_uint old_tenths;

/* Written by calls_record. */
static char keys[KEYS][IDEM_KEY_MAX + 1];

void
calls_prepare(const uint8_t *bytes, size_t size, uint32_t reply_bytes)
{
    memcpy(body, bytes, size);
    body_size = size;
    reply_asked = reply_bytes;
    reply_size = reply_bytes ? reply_bytes : size;
}

static bench_request
request_of_all(void)
{
    bench_request request = BENCH_REQUEST_INIT;

    request.body.data = body;
    request.body.len = body_size;
    request.reply_bytes = reply_asked;
    return request;
}

static void
done(struct idem_call *call, const bench_reply *reply,
     const struct idem_outcome *outcome)
{
    if (reply && (reply->body.len != reply_size ||
                  (reply_asked == 0 &&
                   memcmp(reply->body.data, body, body_size) != 0))) {
        fprintf(stderr, "bench: another body came back\n");
        exit(1);
    }
    loop_done(idem_call_user(call), outcome);
}

static const struct idem_call_metadata token = {
    SIDE_TOKEN_NAME,
    {(const uint8_t *)SIDE_TOKEN, sizeof SIDE_TOKEN - 1},
};

/* As the peers of rpc_bench: with the token, and their deadline. */
static struct idem_call_options
with_token(const struct idem_call_options *options)
{
    struct idem_call_options own = *options;

    own.timeout_ms = SIDE_TIMEOUT_MS;
    own.metadata = &token;
    own.n_metadata = 1;
    return own;
}

struct idem_call *
call_echo(struct idem_channel *channel, const struct idem_call_options *options)
{
    const struct idem_call_options own = with_token(options);
    const bench_request request = request_of_all();

    return bench_echo_async(channel, &request, &own, done);
}

struct idem_call *
call_echo_inline(struct idem_channel *channel,
                 const struct idem_call_options *options)
{
    const struct idem_call_options own = with_token(options);
    const bench_request request = request_of_all();

    return bench_echo_inline_async(channel, &request, &own, done);
}

struct idem_call *
call_lease(struct idem_channel *channel,
           const struct idem_call_options *options)
{
    const bench_request request = request_of_all();

    return bench_lease_async(channel, &request, options, done);
}

struct idem_call *
call_transact(struct idem_channel *channel,
              const struct idem_call_options *options)
{
    const bench_request request = request_of_all();

    return bench_transact_async(channel, &request, options, done);
}

struct idem_call *
call_state(struct idem_channel *channel,
           const struct idem_call_options *options)
{
    const bench_request request = request_of_all();

    return bench_state_async(channel, &request, options, done);
}

struct idem_call *
call_foretell(struct idem_channel *channel,
              const struct idem_call_options *options)
{
    const bench_request request = request_of_all();

    return bench_foretell_async(channel, &request, options, done);
}

struct idem_call *
call_group(struct idem_channel *channel,
           const struct idem_call_options *options)
{
    const bench_request request = request_of_all();

    return bench_group_async(channel, &request, options, done);
}

static struct idem_call_options
with_old_key(const struct idem_call_options *options)
{
    static atomic_uint turn;
    struct idem_call_options own = *options;

    own.key = keys[atomic_fetch_add(&turn, 1) % KEYS];
    return own;
}

struct idem_call *
call_lease_again(struct idem_channel *channel,
                 const struct idem_call_options *options)
{
    const struct idem_call_options own = with_old_key(options);

    return call_lease(channel, &own);
}

void
calls_mix(unsigned tenths)
{
    atomic_store(&old_tenths, tenths);
}

struct idem_call *
call_lease_mixed(struct idem_channel *channel,
                 const struct idem_call_options *options)
{
    static atomic_uint turn;

    if (atomic_fetch_add(&turn, 1) % 10 < atomic_load(&old_tenths))
        return call_lease_again(channel, options);
    return call_lease(channel, options);
}

struct idem_call *
call_popular_again(struct idem_channel *channel,
                   const struct idem_call_options *options)
{
    const struct idem_call_options own = with_old_key(options);
    const bench_request request = request_of_all();

    return bench_popular_async(channel, &request, &own, done);
}

static void
must(enum idem_status status, const struct idem_outcome *outcome)
{
    if (status == IDEM_OK)
        return;
    fprintf(stderr, "bench: %s\n", outcome->message);
    exit(1);
}

void
calls_record(struct idem_channel *channel)
{
    const bench_request request = request_of_all();
    struct idem_outcome outcome;

    for (unsigned i = 0; i < KEYS; i++) {
        const struct idem_call_options options = {.key = keys[i]};

        idem_key_mint(keys[i], idem_clock_system(), DAY_MS);
        must(bench_lease(channel, &request, NULL, &options, &outcome),
             &outcome);
        must(bench_popular(channel, &request, NULL, &options, &outcome),
             &outcome);
    }
}

enum idem_status
calls_wait(struct idem_channel *channel, bench_reply **reply,
           struct idem_outcome *outcome)
{
    const struct idem_call_options own =
        with_token(&(struct idem_call_options){0});
    const bench_request request = request_of_all();

    return bench_echo(channel, &request, reply, &own, outcome);
}
