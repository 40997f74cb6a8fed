/* The demo: clients that repeat everything, servers that die, and a count of
 * every unit of money at the end. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "client.h"
#include "report.h"

#define CLIENTS_MAX 64
#define TICK_MS 100

enum {
    EVERYTHING_ONCE = 0,
    SOMETHING_WRONG = 1,
    NO_DEMO = 2,
    INTERRUPTED = 128 + SIGINT,
};

static volatile sig_atomic_t interrupted;

static void
interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* All that a run is made of. */
struct demo {
    struct demo_options options;
    struct stage stage;
    struct plan plan;
    struct tally tally;
    struct trouble trouble;
    struct client clients[CLIENTS_MAX];
    unsigned n_clients;
};

static void
announce(const struct demo_options *options)
{
    printf("%u clients make %u calls, each more than once, on %s%s (seed "
           "%llu).\n",
           options->clients, options->calls,
           options->servers ? "PostgreSQL and Redis, two servers" : "SQLite",
           options->baseline ? ", WITHOUT once" : "",
           (unsigned long long)options->seed);
    fflush(stdout);
}

static bool
start_clients(struct demo *demo)
{
    while (demo->n_clients < demo->options.clients) {
        struct client *client = &demo->clients[demo->n_clients];

        *client = (struct client){
            .plan = &demo->plan,
            .tally = &demo->tally,
            .number = demo->n_clients,
            .of = demo->options.clients,
        };
        if (!client_start(client, proxy_address(demo->stage.proxy)))
            return false;
        demo->n_clients++;
    }
    return true;
}

/* Clear the stage under the clients' feet. */
static void
leave(struct demo *demo)
{
    stage_close(&demo->stage, demo->options.keep);
    _exit(INTERRUPTED);
}

/* Make trouble until the clients are done. */
static bool
watch(struct demo *demo)
{
    struct tally_counts counts;
    bool stands = true;

    do {
        counts = tally_wait(&demo->tally, TICK_MS);
        if (interrupted)
            leave(demo);
        report_progress(&counts, &demo->trouble);
        stands = stands && trouble_make(&demo->trouble, counts.settled);
    } while (counts.finished < demo->n_clients);
    return stands;
}

static bool
play(struct demo *demo)
{
    bool complete, stands;

    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    complete = start_clients(demo);
    stands = watch(demo);

    for (unsigned i = 0; i < demo->n_clients; i++)
        client_join(&demo->clients[i]);
    return complete && stands;
}

static int
judge(struct demo *demo)
{
    struct tally_counts counts = tally_wait(&demo->tally, 0);
    struct audit audit;
    char log[STAGE_PATH_MAX + 64];
    bool holds;

    stage_provider_log(&demo->stage, log, sizeof log);
    if (!audit_make(&audit, &demo->plan, demo->stage.addresses[0], log))
        return NO_DEMO;
    holds = audit_holds(&audit) && counts.differ == 0;
    report_table(&counts, &demo->trouble, &audit, holds);
    return holds ? EVERYTHING_ONCE : SOMETHING_WRONG;
}

static int
run(struct demo *demo)
{
    int code = NO_DEMO;
    bool keep;

    announce(&demo->options);
    tally_init(&demo->tally);
    demo->plan = plan_make(&demo->options);
    demo->trouble.stage = &demo->stage;
    if (demo->plan.calls && stage_open(&demo->stage, &demo->options) &&
        play(demo))
        code = judge(demo);
    keep = demo->options.keep || code == NO_DEMO ||
           (code == SOMETHING_WRONG && !demo->options.baseline);
    stage_close(&demo->stage, keep);
    plan_free(&demo->plan);
    tally_fini(&demo->tally);
    return code;
}

int
main(int argc, char **argv)
{
    static struct demo demo;

    signal(SIGPIPE, SIG_IGN);
    switch (demo_options_parse(&demo.options, argc, argv)) {
    case DEMO_HELP:
        return EVERYTHING_ONCE;
    case DEMO_WRONG:
        return NO_DEMO;
    case DEMO_RUN:
        return run(&demo);
    }
    return NO_DEMO;
}
