#ifndef PAYMENTS_WORLD_H
#define PAYMENTS_WORLD_H

#include <idem/standard.h>

#include "payments.idem.h"
#include "tempdir.h"

/* The payments service in this process, on a SQLite file or a PostgreSQL, with
 * a client, and the fake provider beside it. Every function fails the test when
 * it cannot do its work. */
struct payments_world {
    struct tempdir dir;
    char books[TEMPDIR_MAX + 32], provider[TEMPDIR_MAX + 32];
    char log[TEMPDIR_MAX + 32]; /* the provider's */
    pid_t provider_pid;
    struct idem_server *server;
    struct idem_channel *channel;
};

/* As cmocka's group setup and teardown: the worlds in between are on a private
 * PostgreSQL, each on an empty database. */
int payments_world_use_postgres(void **state);
int payments_world_leave_postgres(void **state);

/* As cmocka's setup and teardown: *state is the world. */
int payments_world_open(void **state);
int payments_world_close(void **state);

/* Stop the server as if its machine went down between calls, and start another
 * one on the same books. */
void payments_world_restart(struct payments_world *world);

void payments_world_start_provider(struct payments_world *world);
void payments_world_stop_provider(struct payments_world *world);

/* Who calls from now on, as an interceptor that checks tokens would say; NULL:
 * nobody that is known. */
void payments_world_be(const char *tenant);

/* Calls by key; NULL: a new one. The reply's first number, -1 without one. */
int64_t world_open(struct payments_world *world, const char *account,
                   int64_t balance);
int64_t world_charge(struct payments_world *world, const char *key,
                     const char *account, int64_t amount, const char *order,
                     struct idem_outcome *outcome);
int64_t world_transfer(struct payments_world *world, const char *source,
                       const char *target, int64_t amount,
                       struct idem_outcome *outcome);

/* The reference is written into text, "" without one. */
void world_payout(struct payments_world *world, const char *key,
                  const char *destination, int64_t amount, char *text,
                  size_t size, struct idem_outcome *outcome);

int64_t world_balance(struct payments_world *world, const char *account);
int64_t world_entries(struct payments_world *world, const char *account);

/* Lines of the provider's log. */
unsigned world_paid(const struct payments_world *world);

#endif
