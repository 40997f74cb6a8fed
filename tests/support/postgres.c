#include "support.h"

#include "child.h"
#include "loopback.h"
#include "postgres_inside.h"

#include <dirent.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READY_MS 60000

/* PostgreSQL refuses to run as root. */
const char *
postgres_user(void)
{
    if (geteuid() != 0)
        return NULL;
    return getpwnam("postgres") ? "postgres" : "nobody";
}

const char *
postgres_program(const char *name, char *path, size_t size)
{
    const char *folder = getenv("IDEM_POSTGRES_BIN");

    snprintf(path, size, "%s/%s",
             folder ? folder : "/usr/lib/postgresql/15/bin", name);
    return path;
}

void
postgres_give(const char *path)
{
    const char *user = postgres_user();
    const struct passwd *entry = user ? getpwnam(user) : NULL;

    if (entry)
        assert_int_equal(chown(path, entry->pw_uid, entry->pw_gid), 0);
}

static void
template_path(char *path, size_t size)
{
    snprintf(path, size, "%s/idem-postgres-15.%u", tempdir_root(),
             (unsigned)geteuid());
}

/* Is the template there, and made by us? Anybody may write to /tmp. */
static bool
has_template(const char *path)
{
    const char *user = postgres_user();
    const struct passwd *entry = user ? getpwnam(user) : NULL;
    struct stat status;

    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == (entry ? entry->pw_uid : geteuid());
}

/* Made beside, then renamed: tests may start at the same time. */
static void
make_template(const char *path)
{
    struct tempdir dir;
    char data[POSTGRES_PATH_SIZE], log[POSTGRES_PATH_SIZE],
        bin[POSTGRES_PATH_SIZE];
    const struct child_options options = {.user = postgres_user(), .log = log};

    tempdir_open(&dir);
    postgres_give(dir.path);
    tempdir_file(&dir, "data", data, sizeof(data));
    tempdir_file(&dir, "log", log, sizeof(log));
    child_run(&options, (const char *const[]){
                            postgres_program("initdb", bin, sizeof(bin)), "-D",
                            data, "-U", "idem", "-A", "trust", "-E", "UTF8",
                            "--locale=C", "--no-sync", NULL});
    if (rename(data, path) != 0)
        assert_true(has_template(path));
    tempdir_close(&dir);
}

static void
copy_template(struct postgres *postgres)
{
    const struct child_options options = {.user = postgres_user(),
                                          .log = postgres->log};
    char path[POSTGRES_PATH_SIZE];

    template_path(path, sizeof(path));
    if (!has_template(path))
        make_template(path);
    child_run(&options,
              (const char *const[]){"cp", "-a", path, postgres->data, NULL});
}

void
postgres_write_conf(const struct postgres *postgres,
                    const struct postgres_options *options)
{
    char path[POSTGRES_PATH_SIZE * 2];
    FILE *file;

    snprintf(path, sizeof(path), "%s/postgresql.conf", postgres->data);
    file = fopen(path, "a");
    assert_non_null(file);
    fprintf(file,
            "listen_addresses = '127.0.0.1'\nport = %u\n"
            "unix_socket_directories = '%s'\nmax_connections = 100\n"
            "shared_buffers = 32MB\nfsync = %s\nlog_statement = none\n%s\n",
            postgres->port, postgres->dir.path,
            options && options->durable ? "on" : "off",
            options && options->settings ? options->settings : "");
    fclose(file);
}

void
postgres_launch(struct postgres *postgres)
{
    const struct child_options options = {
        .user = postgres_user(), .log = postgres->log, .death_signal = SIGQUIT};
    char bin[POSTGRES_PATH_SIZE];
    const char *const arguments[] = {
        postgres_program("postgres", bin, sizeof(bin)), "-D", postgres->data,
        NULL};

    postgres->pid = child_start(&options, arguments);
}

/* Started again when it ended at once: after a kill -9 the shared memory is in
 * use until the last backend is gone. */
static bool
accepts(void *with)
{
    struct postgres *postgres = with;

    if (!child_alive(postgres->pid))
        postgres_launch(postgres);
    return PQping(postgres->conninfo) == PQPING_OK;
}

static void
launch(struct postgres *postgres)
{
    postgres_launch(postgres);
    if (child_wait_until(accepts, postgres, READY_MS))
        return;
    child_show(postgres->log);
    fail_msg("PostgreSQL does not start");
}

static void
name_port(struct postgres *postgres)
{
    postgres->port = loopback_free_port();
    snprintf(postgres->conninfo, sizeof(postgres->conninfo),
             "host=127.0.0.1 port=%u user=idem dbname=postgres",
             postgres->port);
}

struct postgres *
postgres_prepare(void)
{
    struct postgres *postgres = calloc(1, sizeof(*postgres));

    assert_non_null(postgres);
    tempdir_open(&postgres->dir);
    postgres_give(postgres->dir.path);
    tempdir_file(&postgres->dir, "data", postgres->data,
                 sizeof(postgres->data));
    tempdir_file(&postgres->dir, "postgres.log", postgres->log,
                 sizeof(postgres->log));
    name_port(postgres);
    postgres->kept = postgres_kept_new();
    return postgres;
}

struct postgres *
postgres_start(const struct postgres_options *options)
{
    struct postgres *postgres = postgres_prepare();

    copy_template(postgres);
    postgres_write_conf(postgres, options);
    launch(postgres);
    return postgres;
}

unsigned
postgres_port(const struct postgres *postgres)
{
    return postgres->port;
}

const char *
postgres_conninfo(const struct postgres *postgres)
{
    return postgres->conninfo;
}

const char *
postgres_conninfo_at(struct postgres *postgres, unsigned port)
{
    snprintf(postgres->proxied, sizeof(postgres->proxied),
             "host=127.0.0.1 port=%u user=idem dbname=postgres", port);
    return postgres->proxied;
}

void
postgres_stop(struct postgres *postgres)
{
    postgres_kept_close(postgres->kept);
    child_stop(postgres->pid, SIGINT);
    postgres->pid = 0;
}

void
postgres_crash(struct postgres *postgres)
{
    postgres_kept_close(postgres->kept);
    child_stop(postgres->pid, SIGQUIT);
    postgres->pid = 0;
}

void
postgres_restart(struct postgres *postgres)
{
    postgres_crash(postgres);
    launch(postgres);
}

/* The parent of a process, from "PID (name) S PPID …". */
static pid_t
parent_of(pid_t pid)
{
    char path[64], line[512] = "";
    const char *rest;
    FILE *file;
    int parent = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (!file)
        return 0;
    rest = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    if (!rest || sscanf(rest, ") %*c %d", &parent) != 1)
        parent = 0;
    fclose(file);
    return parent;
}

static void
signal_backends(const struct postgres *postgres, int signal)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    assert_non_null(proc);
    while ((entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0 && parent_of(pid) == postgres->pid)
            kill(pid, signal);
    }
    closedir(proc);
}

void
postgres_freeze(struct postgres *postgres)
{
    kill(postgres->pid, SIGSTOP);
    signal_backends(postgres, SIGSTOP);
}

void
postgres_thaw(struct postgres *postgres)
{
    signal_backends(postgres, SIGCONT);
    kill(postgres->pid, SIGCONT);
}

/* Frozen first, so that the postmaster starts no backend meanwhile. */
void
postgres_kill(struct postgres *postgres)
{
    postgres_kept_close(postgres->kept);
    postgres_freeze(postgres);
    signal_backends(postgres, SIGKILL);
    child_stop(postgres->pid, SIGKILL);
    postgres->pid = 0;
}

void
postgres_free(struct postgres *postgres)
{
    if (!postgres)
        return;
    if (postgres->pid > 0)
        postgres_thaw(postgres);
    postgres_crash(postgres);
    postgres_kept_free(postgres->kept);
    tempdir_close(&postgres->dir);
    free(postgres);
}
