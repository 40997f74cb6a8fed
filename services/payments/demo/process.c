#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child, between fork and exec: only what is safe there. */
static void
become(const char *const argv[], int out, int log)
{
    char *words[64];
    size_t n = 0;
    sigset_t none;

    for (; argv[n] && n < 63; n++)
        memcpy(&words[n], &argv[n], sizeof words[n]);
    words[n] = NULL;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execvp(words[0], words);
    _exit(127);
}

static pid_t
spawn(const char *const argv[], int out, const char *log)
{
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    pid_t pid = fd < 0 ? -1 : fork();

    if (pid == 0)
        become(argv, out < 0 ? fd : out, fd);
    if (fd >= 0)
        close(fd);
    return pid;
}

bool
process_start(struct process *process, const char *const argv[],
              const char *log)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return false;
    process->pid = spawn(argv, ends[1], log);
    process->out = ends[0];
    close(ends[1]);
    if (process->pid > 0)
        return true;
    close(ends[0]);
    process->pid = 0;
    return false;
}

/* One line without its end; false when there is none in time. */
static bool
read_line(int fd, char *line, size_t size, int limit_ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    for (size_t used = 0; used < size; used++) {
        if (poll(&ready, 1, limit_ms) <= 0 || read(fd, line + used, 1) != 1)
            return false;
        if (line[used] == '\n') {
            line[used] = '\0';
            return true;
        }
    }
    return false;
}

bool
process_wait_line(struct process *process, const char *words, char *rest,
                  size_t size, int limit_ms)
{
    char line[512];

    while (read_line(process->out, line, sizeof line, limit_ms)) {
        const char *found = strstr(line, words);

        if (!found)
            continue;
        found += strlen(words);
        if (strlen(found) >= size)
            return false;
        strcpy(rest, found);
        return true;
    }
    return false;
}

static int
reap(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

void
process_end(struct process *process, int signal)
{
    if (process->pid <= 0)
        return;
    kill(process->pid, signal);
    reap(process->pid);
    close(process->out);
    process->pid = 0;
}

bool
process_run(const char *const argv[], const char *log)
{
    pid_t pid = spawn(argv, -1, log);

    return pid > 0 && reap(pid) == 0;
}
