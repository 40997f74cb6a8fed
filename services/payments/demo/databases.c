#include "databases.h"

#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <idem/postgres.h>

#define WORDS_MAX 24
#define START_MS 30000

/* PostgreSQL refuses to run as root: then it runs as its own user, and dies
 * with the demo all the same. */
static const char *const step_down[] = {
    "setpriv",        "--reuid=postgres", "--regid=postgres",
    "--clear-groups", "--pdeathsig=KILL", NULL,
};

static bool
is_root(void)
{
    return geteuid() == 0;
}

static bool
complain(const struct databases *databases, const char *what)
{
    fprintf(stderr, "demo: %s; see %s\n", what, databases->log);
    return false;
}

/* The words of a command of PostgreSQL's, with its path, as its user. */
static void
postgres_words(const char **words, char *path, size_t size,
               const struct databases *databases, const char *const command[])
{
    size_t n = 0;

    for (size_t i = 0; is_root() && step_down[i]; i++)
        words[n++] = step_down[i];
    snprintf(path, size, "%s/%s", databases->programs, command[0]);
    words[n++] = path;
    for (size_t i = 1; command[i] && n < WORDS_MAX - 1; i++)
        words[n++] = command[i];
    words[n] = NULL;
}

static bool
run_postgres_command(const struct databases *databases,
                     const char *const command[])
{
    const char *words[WORDS_MAX];
    char path[DATABASE_PATH_MAX + 32];

    postgres_words(words, path, sizeof path, databases, command);
    return process_run(words, databases->log);
}

/* The newest of /usr/lib/postgresql, or what PATH has. */
static bool
find_programs(struct databases *databases)
{
    const char *newest = NULL;
    glob_t found;

    if (glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) == 0)
        newest = found.gl_pathv[found.gl_pathc - 1];
    if (newest)
        snprintf(databases->programs, sizeof databases->programs, "%.*s",
                 (int)(strrchr(newest, '/') - newest), newest);
    globfree(&found);
    return newest || complain(databases, "there is no PostgreSQL here");
}

static bool
give_to_postgres(const struct databases *databases, const char *folder)
{
    const struct passwd *user = is_root() ? getpwnam("postgres") : NULL;

    if (mkdir(folder, 0700))
        return complain(databases, "a folder cannot be made");
    if (!is_root() || (user && chown(folder, user->pw_uid, user->pw_gid) == 0))
        return true;
    return complain(databases, "there is no user \"postgres\" to run it as");
}

static bool
start_postgres(struct databases *databases)
{
    char data[DATABASE_PATH_MAX + 16];
    const char *const server[] = {
        "postgres",
        "-D",
        data,
        "-k",
        data,
        "-c",
        "listen_addresses=",
        "-c",
        "fsync=on",
        "-c",
        "logging_collector=off",
        NULL,
    };
    const char *const ready[] = {"pg_isready", "-q",   "-h", data,
                                 "-t",         "1",    "-d", "postgres",
                                 "-U",         "demo", NULL};
    const char *words[WORDS_MAX];
    char path[DATABASE_PATH_MAX + 32];

    snprintf(data, sizeof data, "%s/postgres", databases->folder);
    postgres_words(words, path, sizeof path, databases, server);
    if (!process_start(&databases->postgres, words, databases->log))
        return complain(databases, "PostgreSQL does not start");
    for (int tries = START_MS / 100; tries > 0; tries--) {
        if (run_postgres_command(databases, ready))
            return true;
        usleep(100000);
    }
    return complain(databases, "PostgreSQL does not get ready");
}

static bool
make_postgres(struct databases *databases, const char *schema)
{
    char data[DATABASE_PATH_MAX + 16];
    const char *const init[] = {"initdb", "-D",          data,        "-A",
                                "trust",  "-U",          "demo",      "-E",
                                "UTF8",   "--no-locale", "--no-sync", NULL};
    const char *const psql[] = {
        "psql", "-q",   "-v", "ON_ERROR_STOP=1", "-d", databases->conninfo,
        "-c",   schema, NULL};
    struct idem_error err;

    snprintf(data, sizeof data, "%s/postgres", databases->folder);
    snprintf(databases->conninfo, sizeof databases->conninfo,
             "host=%s user=demo dbname=postgres", data);
    if (!find_programs(databases) || !give_to_postgres(databases, data))
        return false;
    if (!run_postgres_command(databases, init))
        return complain(databases, "initdb failed");
    if (!start_postgres(databases))
        return false;
    if (idem_postgres_migrate(databases->conninfo, NULL, &err) != IDEM_OK)
        return complain(databases, err.message);
    if (!run_postgres_command(databases, psql))
        return complain(databases, "the schema was refused");
    return true;
}

static void
redis_socket(const struct databases *databases, char *path, size_t size)
{
    snprintf(path, size, "%s/redis.sock", databases->folder);
}

static bool
make_redis(struct databases *databases)
{
    char path[DATABASE_PATH_MAX + 16], rest[256];
    const char *const server[] = {
        "redis-server",    "--port",       "0",  "--save", "", "--dir",
        databases->folder, "--unixsocket", path, NULL};

    redis_socket(databases, path, sizeof path);
    snprintf(databases->redis_url, sizeof databases->redis_url, "unix://%s",
             path);
    if (process_start(&databases->redis, server, databases->log) &&
        process_wait_line(&databases->redis, "ready to accept connections",
                          rest, sizeof rest, START_MS))
        return true;
    return complain(databases, "Redis does not start");
}

bool
databases_open(struct databases *databases, const char *folder,
               const char *schema)
{
    *databases = (struct databases){0};
    snprintf(databases->folder, sizeof databases->folder, "%s", folder);
    snprintf(databases->log, sizeof databases->log, "%s/databases.log", folder);
    return make_postgres(databases, schema) && make_redis(databases);
}

bool
databases_crash_postgres(struct databases *databases)
{
    process_end(&databases->postgres, SIGQUIT); /* "immediate" */
    return start_postgres(databases);
}

bool
databases_flush_redis(struct databases *databases)
{
    char path[DATABASE_PATH_MAX + 16];
    const char *const flush[] = {"redis-cli", "-s", path, "FLUSHALL", NULL};

    redis_socket(databases, path, sizeof path);
    return process_run(flush, databases->log) ||
           complain(databases, "Redis cannot be flushed");
}

void
databases_stop_redis(struct databases *databases)
{
    process_end(&databases->redis, SIGKILL);
}

void
databases_close(struct databases *databases)
{
    process_end(&databases->redis, SIGKILL);
    process_end(&databases->postgres, SIGINT);
}
