#ifndef DEMO_CLIENT_H
#define DEMO_CLIENT_H

#include "tally.h"

#define CLIENT_LATE_MAX 4

/* One impatient client: makes its share of the calls, each with a double click
 * and a late duplicate. A thread of its own, and a second finger for the
 * clicks. */
struct client {
    struct plan *plan;
    struct tally *tally;
    unsigned number, of; /* its share: every of-th call, from its number */
    struct idem_channel *channel;
    pthread_t thread;
    struct plan_call *late[CLIENT_LATE_MAX]; /* to be repeated later */
    unsigned n_late;
};

/* False: says why to stderr. */
bool client_start(struct client *client, const char *server);

/* Wait until it has made all its calls. */
void client_join(struct client *client);

#endif
