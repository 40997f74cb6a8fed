#ifndef DEMO_DATABASES_H
#define DEMO_DATABASES_H

#include "process.h"

#define DATABASE_PATH_MAX 256

/* A PostgreSQL and a Redis of the demo's own, on sockets in its folder. The
 * main thread's. Functions say to stderr why they fail. */
struct databases {
    char folder[DATABASE_PATH_MAX];
    char log[DATABASE_PATH_MAX + 16];
    char programs[DATABASE_PATH_MAX]; /* where PostgreSQL's are */
    char conninfo[DATABASE_PATH_MAX + 64];
    char redis_url[DATABASE_PATH_MAX + 64];
    struct process postgres, redis;
};

/* Make both in the folder, start them, migrate, and run the schema's SQL. */
bool databases_open(struct databases *databases, const char *folder,
                    const char *schema);

/* As `pg_ctl restart -m immediate`: what was not committed is gone. */
bool databases_crash_postgres(struct databases *databases);

bool databases_flush_redis(struct databases *databases);
void databases_stop_redis(struct databases *databases);

/* Fine when only a part of them, or nothing, was opened. */
void databases_close(struct databases *databases);

#endif
