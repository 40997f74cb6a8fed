#ifndef DEMO_STAGE_H
#define DEMO_STAGE_H

#include "databases.h"
#include "options.h"
#include "proxy.h"

#define STAGE_SERVERS_MAX 2
#define STAGE_PATH_MAX 192

/* All that the clients call: the provider, the servers, what keeps their
 * books, and the proxy in front. The main thread's. Functions say to stderr why
 * they fail. */
struct stage {
    const struct demo_options *options;
    char folder[STAGE_PATH_MAX];   /* everything is in here */
    char programs[STAGE_PATH_MAX]; /* where the demo itself is */
    struct process provider;
    struct process servers[STAGE_SERVERS_MAX];
    char addresses[STAGE_SERVERS_MAX][64]; /* "tcp://127.0.0.1:1234" */
    unsigned n_servers;
    struct databases databases; /* with --servers */
    struct proxy *proxy;
};

bool stage_open(struct stage *stage, const struct demo_options *options);

/* SIGKILL, and started again at once. */
bool stage_kill_server(struct stage *stage, unsigned index);

/* The path of the provider's log. */
void stage_provider_log(const struct stage *stage, char *path, size_t size);

/* Fine when only a part of it was opened. The folder stays when keep says so.
 */
void stage_close(struct stage *stage, bool keep);

#endif
