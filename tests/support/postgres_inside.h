#ifndef POSTGRES_INSIDE_H
#define POSTGRES_INSIDE_H

#include "postgres.h"

#include "tempdir.h"

#define POSTGRES_PATH_SIZE (TEMPDIR_MAX + 64)

/* What postgres.c and postgres_standby.c share. */
struct postgres {
    struct tempdir dir;
    pid_t pid;
    unsigned port;
    char data[POSTGRES_PATH_SIZE];
    char log[POSTGRES_PATH_SIZE];
    char conninfo[160];
    char proxied[160];
    struct postgres_kept *kept;
};

/* The connection of postgres_sql, kept between its calls: PostgreSQL forks for
 * each new one, which costs far more than a statement. */
struct postgres_kept *postgres_kept_new(void);
void postgres_kept_free(struct postgres_kept *kept);

/* The next one is new. */
void postgres_kept_close(struct postgres_kept *kept);

/* It, or a new one while another thread has it: to run sql on it, and to be
 * given back. */
struct pg_conn *postgres_take(const struct postgres *postgres);
void postgres_give_back(const struct postgres *postgres, struct pg_conn *conn,
                        const char *sql);

/* Whom it runs as; NULL: the test's own user. */
const char *postgres_user(void);

/* The file or folder is that user's. */
void postgres_give(const char *path);

/* The path of one of its programs, in path. */
const char *postgres_program(const char *name, char *path, size_t size);

/* A folder and a port; nothing is there yet. */
struct postgres *postgres_prepare(void);

/* Append the settings that each has. */
void postgres_write_conf(const struct postgres *postgres,
                         const struct postgres_options *options);

/* The process; it may not accept yet. */
void postgres_launch(struct postgres *postgres);

#endif
