/* Very many connections to one server, and peers that misbehave.
 *
 *    crowd_bench [--quick]
 *
 * The server has a process of its own; the clients are this one, by hand, on
 * one epoll: IDLE connections that have said hello and no more, ACTIVE ones
 * with one call under way each. Then for each way to misbehave BAD peers that
 * do: the 99th percentile of the active ones beside them over that just before.
 * Exits with 1 when a connection starved, or was lost. */
#include "crowd_client.h"

#include <idem/standard.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "echo.idem.h"

#include "measure.h"
#include "process.h"

#define IDLE 10000
#define ACTIVE 1000
#define BAD 100
#define SECONDS 5.0
#define SECONDS_QUICK 1.0
#define ROUNDS 3
#define STARVED_MS 1000
#define RATIO_MAX 2.0

/* --- The server, in a process of its own --- */

static enum idem_status
echo(struct idem_context *context, const echo_echo_request *request,
     echo_echo_reply *reply)
{
    (void)context;
    reply->body = request->body;
    return IDEM_OK;
}

static void serve(int to) __attribute__((noreturn));

static void
serve(int to)
{
    static const struct echo_handlers handlers = {.echo = echo};
    const struct idem_server_options options = {.max_connections = 15000,
                                                .stall_timeout_ms = 2000};
    struct idem_server *server = NULL;
    struct idem_error err;
    char address[64] = "";

    if (idem_server_open(&server, NULL, &options, NULL, &err) != IDEM_OK ||
        echo_register(server, &handlers, NULL, &err) != IDEM_OK ||
        idem_server_listen(server, "tcp://127.0.0.1:0", &err) != IDEM_OK ||
        idem_server_start(server, &err) != IDEM_OK) {
        fprintf(stderr, "crowd_bench: %s\n", err.message);
        _exit(1);
    }
    snprintf(address, sizeof address, "%s", idem_server_address(server, 0));
    if (write(to, address, sizeof address) != sizeof address)
        _exit(1);
    for (;;)
        pause();
}

static int
start_server(char address[64])
{
    int pipes[2], pid;

    if (pipe(pipes) != 0 || (pid = fork()) < 0)
        crowd_die("no process for the server");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(pipes[1]);
    }
    close(pipes[1]);
    if (read(pipes[0], address, 64) != 64)
        crowd_die("the server did not start");
    close(pipes[0]);
    return pid;
}

/* Both processes need a file for each connection. */
static void
raise_files(void)
{
    struct rlimit files;
    rlim_t wanted = IDLE + ACTIVE + 2 * BAD + 100;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        crowd_die("getrlimit");
    if (files.rlim_max < wanted) {
        fprintf(stderr,
                "crowd_bench: %llu files are needed (ulimit -n), the hard "
                "limit is %llu\n",
                (unsigned long long)wanted, (unsigned long long)files.rlim_max);
        exit(2);
    }
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        crowd_die("setrlimit");
}

/* --- The crowd --- */

static bool wrong;

static void
note_starved(const struct crowd_seen *seen)
{
    if (seen->longest_ns <= INT64_C(1000000) * STARVED_MS && seen->fewest > 0 &&
        seen->lost == 0)
        return;
    fprintf(stderr,
            "crowd_bench: longest %.0f ms, fewest calls of a connection %llu, "
            "%u lost\n",
            (double)seen->longest_ns / 1e6, (unsigned long long)seen->fewest,
            seen->lost);
    wrong = true;
}

static void
measure_crowd(struct crowd_client *client, int server, double seconds)
{
    long before = process_resident_kib(server), idle;
    double cpu;
    struct crowd_seen seen;

    crowd_client_add(client, CROWD_IDLE, IDLE);
    idle = process_resident_kib(server);
    report("crowd.idle.connections", IDLE, "connections");
    report("crowd.idle.kib", (double)(idle - before) / IDLE, "KiB/connection");
    cpu = cpu_of(&server, 1);
    pass_seconds(seconds);
    report("crowd.idle.cpu", (cpu_of(&server, 1) - cpu) / seconds * 100,
           "% of a core");
    crowd_client_add(client, CROWD_ACTIVE, ACTIVE);
    cpu = cpu_of(&server, 1);
    seen = crowd_client_run(client, seconds);
    note_starved(&seen);
    report("crowd.active.connections", ACTIVE, "connections");
    report("crowd.active.calls", (double)seen.calls / seconds, "calls/s");
    report("crowd.active.p50", (double)seen.p50_ns / 1e3, "us");
    report("crowd.active.p99", (double)seen.p99_ns / 1e3, "us");
    report("crowd.active.cpu",
           (cpu_of(&server, 1) - cpu) / (double)seen.calls * 1e6, "us/call");
    report("crowd.server.rss", (double)process_resident_kib(server), "KiB");
    report("crowd.fairness", (double)seen.fewest * ACTIVE / (double)seen.calls,
           "fewest/mean");
    report_limit("crowd.starved.ms", (double)seen.longest_ns / 1e6, STARVED_MS);
}

/* Paired: just before, and beside them. */
static void
measure_bad(struct crowd_client *client, enum crowd_kind kind, double seconds)
{
    double ratios[ROUNDS];
    char name[64];

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct crowd_seen alone = crowd_client_run(client, seconds), beside;

        crowd_client_add(client, kind, BAD);
        beside = crowd_client_run(client, seconds);
        note_starved(&beside);
        crowd_client_drop(client, kind);
        ratios[i] = (double)beside.p99_ns / (double)alone.p99_ns;
    }
    snprintf(name, sizeof name, "crowd.bad.%s.p99", crowd_kind_name(kind));
    report_limit(name, median(ratios, ROUNDS), RATIO_MAX);
}

int
main(int argc, char **argv)
{
    bool quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
    double seconds = quick ? SECONDS_QUICK : SECONDS;
    struct crowd_client *client;
    char address[64];
    int server;

    if (argc > 1 && !quick) {
        fprintf(stderr, "usage: crowd_bench [--quick]\n");
        return 2;
    }
    raise_files();
    server = start_server(address);
    client = crowd_client_new(address);
    measure_crowd(client, server, seconds);
    for (unsigned kind = CROWD_GARBAGE; kind < CROWD_KINDS; kind++)
        measure_bad(client, (enum crowd_kind)kind, seconds / 2);
    crowd_client_free(client);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return wrong;
}
