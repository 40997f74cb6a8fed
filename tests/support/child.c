#include "support.h"

#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_MS 20000
#define RUN_MS 60000
#define READY_MS 60000
#define SHOWN 4096

static int64_t
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

bool
child_wait_until(bool (*look)(void *with), void *with, int timeout_ms)
{
    const struct timespec pause = {0, 5000000};
    int64_t end_ms = now_ms() + timeout_ms;

    while (!look(with)) {
        if (now_ms() > end_ms)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

const char *
child_same_program(void)
{
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    assert_true(n > 0);
    path[n] = '\0';
    return path;
}

static void
drop_root(const char *user)
{
    const struct passwd *entry;

    if (!user || geteuid() != 0)
        return;
    entry = getpwnam(user);
    if (!entry || setgroups(0, NULL) != 0 || setgid(entry->pw_gid) != 0 ||
        setuid(entry->pw_uid) != 0)
        _exit(126);
}

static void
redirect(const char *log)
{
    int fd;

    if (!log)
        return;
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0)
        _exit(126);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
}

static void
become(const struct child_options *options, const char *const *arguments,
       pid_t parent)
{
    /* A change of user clears the death signal, so it comes after. */
    redirect(options->log);
    drop_root(options->user);
    prctl(PR_SET_PDEATHSIG,
          options->death_signal ? options->death_signal : SIGKILL);
    if (getppid() != parent)
        _exit(126);
    if (options->folder && chdir(options->folder) != 0)
        _exit(126);
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    fprintf(stderr, "%s: %s\n", arguments[0], strerror(errno));
    _exit(127);
}

pid_t
child_start(const struct child_options *options, const char *const *arguments)
{
    pid_t parent = getpid(), pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        become(options, arguments, parent);
    return pid;
}

struct waiting {
    pid_t pid;
    int status;
};

static bool
is_gone(void *with)
{
    struct waiting *waiting = with;

    return waitpid(waiting->pid, &waiting->status, WNOHANG) != 0;
}

int
child_stop(pid_t pid, int signal)
{
    struct waiting waiting = {.pid = pid};

    if (pid <= 0)
        return 0;
    kill(pid, signal);
    if (!child_wait_until(is_gone, &waiting, STOP_MS)) {
        kill(pid, SIGKILL);
        waitpid(pid, &waiting.status, 0);
    }
    return waiting.status;
}

bool
child_alive(pid_t pid)
{
    struct waiting waiting = {.pid = pid};

    return pid > 0 && !is_gone(&waiting);
}

struct starting {
    const char *log;
    pid_t pid;
};

static bool
listens(const char *log)
{
    char line[128] = "";
    FILE *file = fopen(log, "r");

    if (!file)
        return false;
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    return strncmp(line, "listening on ", 13) == 0;
}

static bool
listens_or_is_dead(void *with)
{
    const struct starting *starting = with;

    return listens(starting->log) || !child_alive(starting->pid);
}

pid_t
child_serve(const struct child_options *options, const char *const *arguments)
{
    struct starting starting = {.log = options->log};

    remove(options->log);
    starting.pid = child_start(options, arguments);
    if (!child_wait_until(listens_or_is_dead, &starting, READY_MS)) {
        child_stop(starting.pid, SIGKILL);
        return 0;
    }
    /* One that has listened may have served, and died of it, meanwhile. */
    return listens(options->log) ? starting.pid : 0;
}

void
child_show(const char *log)
{
    FILE *file = log ? fopen(log, "r") : NULL;
    char line[512];

    if (file && fseek(file, -SHOWN, SEEK_END) != 0)
        rewind(file);
    while (file && fgets(line, sizeof(line), file))
        fputs(line, stderr);
    if (file)
        fclose(file);
}

void
child_run(const struct child_options *options, const char *const *arguments)
{
    struct waiting waiting = {.pid = child_start(options, arguments)};
    bool gone = child_wait_until(is_gone, &waiting, RUN_MS);

    if (gone && WIFEXITED(waiting.status) && WEXITSTATUS(waiting.status) == 0)
        return;
    if (!gone)
        child_stop(waiting.pid, SIGKILL);
    child_show(options->log);
    fail_msg("%s: wait status %d", arguments[0], waiting.status);
}
