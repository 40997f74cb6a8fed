#ifndef DOUBT_SITE_H
#define DOUBT_SITE_H

#include "support.h"

#include "checker.h"
#include "postgres.h"
#include "tempdir.h"

#include <idem/channel.h>

/* A server that may be killed, on an authority; its client, a place for its
 * operator, and who judges in the end what was told of its keys. */

#define SITE_READY_MS 20000

struct site {
    struct tempdir dir;
    char books[128], push_log[128], log[128], reply[128], address[64];
    char place[256];           /* idemctl's options */
    struct postgres *postgres; /* NULL: sqlite */
    pid_t server;
    struct idem_channel *channel;
    struct checker *checker;
};

/* Fails the test with the error's words. */
void must(enum idem_status status, const struct idem_error *err);

/* cmocka fixtures. The last one fails the test when a rule of I1 to I10 is
 * broken. */
int site_on_sqlite(void **state);
int site_on_postgres(void **state);
int site_down(void **state);

/* Start the server, with a plan of faults or NULL, and wait until it listens.
 */
void site_start(struct site *site, const char *fault);

/* What a call that began then was told of its key; reply: a digest, 0 without
 * one. One thread at a time. */
void site_tell(struct site *site, enum checker_runs runs, int64_t began_ns,
               const struct idem_outcome *outcome, uint64_t reply);

/* For child_wait_until: the server is not there any more. */
bool site_is_dead(void *with);

#endif
