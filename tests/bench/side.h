#ifndef SIDE_H
#define SIDE_H

#include <stdbool.h>

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One candidate of rpc_bench, as a program that is its server or its client:
 *
 *    PROGRAM server ADDRESS [HOW]
 *        says "ready ADDRESS", with the port that it got, and serves until it
 *        is killed
 *    PROGRAM client ADDRESS CONNECTIONS IN_FLIGHT BYTES SECONDS SERVER [HOW]
 *        calls in a closed loop and says "calls seconds cpu p50 p99" of both
 *        processes; SERVER is the server's process id
 *
 * Every call carries a deadline of 5 s and the token as metadata; the server
 * looks it up and answers the body; the client compares every byte. */

#define SIDE_TOKEN_NAME "bench-token"
#define SIDE_TOKEN "6f1c1c1e-8d5f-4b0e-9a53-0a1b2c3d4e5f"
#define SIDE_TIMEOUT_MS 5000
#define SIDE_BODY_MAX 65536

/* Addresses with TLS begin so; the server's certificate, which the client
 * trusts, and its key are PEM files in $BENCH_FOLDER. */
#define SIDE_TLS "tls+"
#define SIDE_CERTIFICATE "tls.crt"
#define SIDE_KEY "tls.key"

struct side_options {
    const char *address; /* "tcp://127.0.0.1:4711", "tls+tcp://127.0.0.1:4711",
                          * "ipc:///tmp/x" */
    unsigned connections, in_flight, bytes;
    const char *how;     /* the candidate's own word; "" without one */
    const uint8_t *body; /* that many bytes, to be sent and expected */
};

struct side {
    /* Serve for ever, on any thread; say side_ready first. */
    void (*serve)(const char *address, const char *how);

    /* Start in_flight calls and return; each that ends asks tally_add. */
    void (*call)(const struct side_options *options, struct tally *tally);
};

void side_ready(const char *address);

/* The address begins with SIDE_TLS. */
bool side_is_tls(const char *address);

/* The path of a file in $BENCH_FOLDER; the next call's overwrites it. */
const char *side_file(const char *name);

/* Ends the process. */
void side_die(const char *what, const char *why) __attribute__((noreturn));

int side_main(int argc, char **argv, const struct side *side);

#ifdef __cplusplus
}
#endif

#endif
