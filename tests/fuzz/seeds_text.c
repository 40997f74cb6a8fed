#include "seed.h"

#include <idem/clock.h>
#include <idem/key.h>

#include <string.h>

/* --- Text --- */

static void
seed_keys(void)
{
    seed_save_text("key", "opaque", "order-17");
    seed_save_text("key", "minted",
                   "idk_018bcfe5680070008000000000000001_86400_00000000");
    seed_save_text("key", "session",
                   "ids_018bcfe5680070008000000000000001_86400_7_00000000");
}

/* Keys of a fake time, so that their checksum is right and always the same. */
static int64_t
no_time(const struct idem_clock *clock)
{
    (void)clock;
    return 1700000000000;
}

static void
no_chance(const struct idem_clock *clock, void *bytes, size_t size)
{
    (void)clock;
    memset(bytes, 7, size);
}

static void
seed_minted_keys(void)
{
    const struct idem_clock clock = {
        .wall_ms = no_time, .monotonic_ns = no_time, .random = no_chance};
    char text[IDEM_KEY_MAX + 1], session[IDEM_SESSION_MAX];

    idem_key_mint(text, &clock, 86400000);
    seed_save_text("key", "minted_right", text);
    idem_session_mint(session, &clock, 0, 86400000);
    idem_key_of_session(text, session, 7);
    seed_save_text("key", "session_right", text);
}

static void
seed_targets(void)
{
    seed_save_text("target", "tcp", "tcp://127.0.0.1:7070");
    seed_save_text("target", "ipv6", "tcp://[::1]:7070");
    seed_save_text("target", "ipc", "ipc:///run/pay.sock");
    seed_save_text("target", "inproc", "inproc://pay");
    seed_save_text("target", "list", "list://127.0.0.1:1,tcp://b:2,ipc:///c");
    seed_save_text("target", "dns", "dns://pay.example:7070");
}

static void
seed_configs(void)
{
    seed_save_choice(
        "config", "retry", 3,
        "{\"methodConfig\":[{\"name\":[{\"service\":\"pay.v1.Pay\",\"method\":"
        "\"Charge\"}],\"timeout\":\"1.5s\",\"attemptTimeout\":\"0.5s\","
        "\"waitForReady\":true,\"maxRequestMessageBytes\":1000,"
        "\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":\"0.1s\","
        "\"maxBackoff\":\"1s\",\"backoffMultiplier\":2,"
        "\"retryableStatusCodes\":[\"UNAVAILABLE\",8]}}],"
        "\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0.1}}");
    seed_save_choice(
        "config", "hedging", 3,
        "{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":{\"maxAttempts\":"
        "3,\"hedgingDelay\":\"0.01s\",\"nonFatalStatusCodes\":[\"aborted\"]}}"
        ",{\"name\":[{\"service\":\"a\"}],\"key\":\"CALLERS\"}]}");
    seed_save_choice(
        "config", "balancing", 3,
        "{\"loadBalancingConfig\":[{\"xds\":{}},{\"ring_hash_experimental\":"
        "{\"minRingSize\":8}}],\"loadBalancingPolicy\":\"ROUND_ROBIN\","
        "\"retryBudget\":{\"ratio\":0.2,\"floor\":3,\"window\":\"5s\"}}");
    seed_save_choice("config", "faults", 0,
                     "{\"methodConfig\":[{\"name\":[],\"retryPolicy\":{"
                     "\"maxAttempts\":1},\"timeout\":\"-1s\"}],\"x\":null}");
}

static void
seed_traceparents(void)
{
    seed_save_text("traceparent", "of_now",
                   "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    seed_save_text("traceparent", "of_later",
                   "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x");
    seed_save_text("traceparent", "of_nobody",
                   "00-00000000000000000000000000000000-00f067aa0ba902b7-01");
}

void
seed_texts(void)
{
    seed_traceparents();
    seed_keys();
    seed_minted_keys();
    seed_targets();
    seed_configs();
}
