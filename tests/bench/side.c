#include "side.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WARM 0.15 /* seconds */

static uint8_t body[SIDE_BODY_MAX];

void
side_ready(const char *address)
{
    printf("ready %s\n", address);
    fflush(stdout);
}

bool
side_is_tls(const char *address)
{
    return strncmp(address, SIDE_TLS, sizeof(SIDE_TLS) - 1) == 0;
}

const char *
side_file(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", getenv("BENCH_FOLDER"), name);
    return path;
}

void
side_die(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

static void
fill_body(void)
{
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (uint8_t)(i * 7 + 3);
}

static void
run_client(int argc, char **argv, const struct side *side)
{
    struct side_options options = {
        .address = argv[2],
        .connections = (unsigned)atoi(argv[3]),
        .in_flight = (unsigned)atoi(argv[4]),
        .bytes = (unsigned)atoi(argv[5]),
        .how = argc > 8 ? argv[8] : "",
        .body = body,
    };
    const int server = atoi(argv[7]);
    struct tally_window window = {
        .running = options.in_flight,
        .warm = WARM,
        .seconds = atof(argv[6]),
        .others = &server,
        .n_others = 1,
    };
    struct tally *tally = tally_new();
    struct measure seen;

    side->call(&options, tally);
    seen = tally_run(tally, &window);
    printf("%" PRIu64 " %.6f %.6f %" PRIu64 " %" PRIu64 "\n", seen.calls,
           seen.seconds, seen.cpu_seconds, seen.p50_ns, seen.p99_ns);
    fflush(stdout);
    _exit(0); /* what was measured is over: no candidate needs to tidy up */
}

int
side_main(int argc, char **argv, const struct side *side)
{
    fill_body();
    if (argc >= 3 && strcmp(argv[1], "server") == 0)
        side->serve(argv[2], argc > 3 ? argv[3] : "");
    else if (argc >= 8 && strcmp(argv[1], "client") == 0)
        run_client(argc, argv, side);
    fprintf(stderr, "usage: see side.h\n");
    return 2;
}
