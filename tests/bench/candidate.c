#include "candidate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE 256
#define IDLE_CONNECTIONS 500
#define IDLE_SECONDS 2

const struct candidate candidates[CANDIDATES] = {
    [IDEM_POOL] = {"idem", "idem_side", "pool"},
    [IDEM_INLINE] = {"idem-inline", "idem_side", "inline"},
    [IDEM_BLOCKING] = {"idem-blocking", "idem_side", "blocking"},
    [IDEM_TALK] = {"idem", "idem_side", "talk"},
    [IDEM_WATCH] = {"idem", "idem_side", "watch"},
    [PLAIN] = {"epoll", "plain_side", ""},
    [REQREP] = {"nng-reqrep", "reqrep_side", ""},
    [GRPC_QUEUE] = {"grpc-queue", "grpc_async_side", "1"},
    [GRPC_QUEUES] = {"grpc-2-queues", "grpc_async_side", "2"},
    [GRPC_CALLBACK] = {"grpc-callback", "grpc_callback_side", ""},
    [GRPC_SYNC] = {"grpc-sync", "grpc_sync_side", ""},
    [GRPC_TALK] = {"grpc-callback", "grpc_stream_side", "talk"},
    [GRPC_WATCH] = {"grpc-callback", "grpc_stream_side", "watch"},
};

bool
candidate_is_built(const struct candidate *candidate)
{
    return process_exists(candidate->program);
}

struct contestant
candidate_start(const struct candidate *candidate, const char *transport,
                const char *folder)
{
    static unsigned started; /* a killed server leaves its socket behind */
    struct contestant contestant = {.candidate = candidate};
    char where[LINE], line[LINE];
    const char *const arguments[] = {"server", where, candidate->how, NULL};

    if (strcmp(transport, "ipc") != 0)
        snprintf(where, sizeof where, "%s://127.0.0.1:0", transport);
    else
        snprintf(where, sizeof where, "ipc://%s/%u", folder, started++);
    contestant.server = process_start(candidate->program, arguments);
    process_read_line(&contestant.server, line, sizeof line);
    if (sscanf(line, "ready %127s", contestant.address) != 1) {
        fprintf(stderr, "bench: %s: %s\n", candidate->name, line);
        exit(1);
    }
    return contestant;
}

void
contestant_stop(struct contestant *contestant)
{
    process_kill(&contestant->server);
}

static struct process
start_client(const struct contestant *contestant,
             const struct candidate_load *load, const char *how)
{
    char connections[16], in_flight[16], bytes[16], seconds[16], server[16];
    const char *const arguments[] = {"client",    contestant->address,
                                     connections, in_flight,
                                     bytes,       seconds,
                                     server,      how,
                                     NULL};

    snprintf(connections, sizeof connections, "%u", load->connections);
    snprintf(in_flight, sizeof in_flight, "%u", load->in_flight);
    snprintf(bytes, sizeof bytes, "%u", load->bytes);
    snprintf(seconds, sizeof seconds, "%.3f", load->seconds);
    snprintf(server, sizeof server, "%d", (int)contestant->server.pid);
    return process_start(contestant->candidate->program, arguments);
}

struct measure
contestant_run(struct contestant *contestant, const struct candidate_load *load)
{
    struct process client =
        start_client(contestant, load, contestant->candidate->how);
    struct measure seen = {0};
    char line[LINE];

    process_read_line(&client, line, sizeof line);
    if (sscanf(line, "%" SCNu64 " %lf %lf %" SCNu64 " %" SCNu64, &seen.calls,
               &seen.seconds, &seen.cpu_seconds, &seen.p50_ns,
               &seen.p99_ns) != 5) {
        fprintf(stderr, "bench: %s: %s\n", contestant->candidate->name, line);
        exit(1);
    }
    process_wait(&client);
    return seen;
}

/* The server's memory while so many connections are kept. */
static long
kept_kib(struct contestant *contestant, unsigned connections)
{
    const struct candidate_load load = {connections, 0, 64, IDLE_SECONDS};
    struct process client = start_client(contestant, &load, "idle");
    char line[LINE];
    long kib;

    process_read_line(&client, line, sizeof line); /* "kept": all of them */
    kib = process_resident_kib(contestant->server.pid);
    process_kill(&client);
    return kib;
}

double
contestant_idle_kib(struct contestant *contestant)
{
    long one = kept_kib(contestant, 1);
    long many = kept_kib(contestant, 1 + IDLE_CONNECTIONS);

    return (double)(many - one) / IDLE_CONNECTIONS;
}
