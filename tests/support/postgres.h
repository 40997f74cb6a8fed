#ifndef POSTGRES_H
#define POSTGRES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A private PostgreSQL on a loopback port and a unix socket, in a temporary
 * folder; it ends with the test. Its database is "postgres", its one user,
 * "idem", may do all. Every function fails the test when it cannot do its work.
 * Started from main, in about half a second: the cluster is a copy of a
 * template that is made once a machine. */
struct postgres;

/* What a test's store is to open: each is a process that PostgreSQL forks. */
#define POSTGRES_FEW_CONNECTIONS 3

struct postgres_options {
    bool durable;         /* fsync on: for tests that crash it */
    const char *settings; /* further lines of postgresql.conf; NULL: none */
};

/* options NULL: all defaults. */
struct postgres *postgres_start(const struct postgres_options *options);
void postgres_free(struct postgres *postgres); /* stops it; NULL is fine */

unsigned postgres_port(const struct postgres *postgres);
const char *postgres_conninfo(const struct postgres *postgres); /* by TCP */

/* As conninfo, through a proxy's port. Lives as long as postgres; one port at a
 * time. */
const char *postgres_conninfo_at(struct postgres *postgres, unsigned port);

void postgres_stop(struct postgres *postgres);  /* -m fast */
void postgres_crash(struct postgres *postgres); /* -m immediate */
void postgres_kill(struct postgres *postgres);  /* kill -9, backends too */

/* Start it again on the same port; it accepts when this returns. */
void postgres_restart(struct postgres *postgres);

/* SIGSTOP and SIGCONT, the postmaster and all of its backends. */
void postgres_freeze(struct postgres *postgres);
void postgres_thaw(struct postgres *postgres);

/* A streaming standby of it, by the name "standby", in a folder of its own.
 * settings: further lines of its postgresql.conf, or NULL. With
 * "hot_standby = off" it answers as one that is starting up, until it is
 * promoted. Freed before its primary. */
struct postgres *postgres_standby(struct postgres *primary,
                                  const char *settings);

/* Make a standby the primary; it takes writes when this returns. */
void postgres_promote(struct postgres *standby);

/* Each commit of the primary waits for the standby, from here. */
void postgres_await_standby(struct postgres *primary);

/* libpq's words for either of the two. */
void postgres_conninfo_of(const struct postgres *first,
                          const struct postgres *second, char conninfo[160]);

/* Run SQL on a connection of its own, in a session like a new one; the
 * first value of the last statement as a number, 0 without one. */
int64_t postgres_sql(const struct postgres *postgres, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Behind idem_postgres_migrate: each record's columns are checked, row by row,
 * as no server's database does (decision 25). */
void postgres_strict(const struct postgres *postgres);

/* Run SQL until it gives a number other than 0. False after timeout_ms. */
bool postgres_wait(const struct postgres *postgres, int timeout_ms,
                   const char *sql);

#endif
