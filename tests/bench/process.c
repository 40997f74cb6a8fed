#include "process.h"

#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void
die(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

/* Programs stand beside the benchmark. */
static void
write_path(char path[PATH_MAX], const char *program)
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    char *end;

    path[n > 0 ? n : 0] = '\0';
    end = strrchr(path, '/');
    if (!end)
        die("/proc/self/exe", "not to be read");
    snprintf(end + 1, (size_t)(path + PATH_MAX - end - 1), "%s", program);
}

bool
process_exists(const char *program)
{
    char path[PATH_MAX];

    write_path(path, program);
    return access(path, X_OK) == 0;
}

static void
become(const char *path, const char *const *arguments, int output)
{
    const char *all[PROCESS_ARGUMENTS + 2] = {path};

    for (unsigned i = 0; arguments[i] && i < PROCESS_ARGUMENTS; i++)
        all[i + 1] = arguments[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output, STDOUT_FILENO);
    execv(path, (char *const *)(uintptr_t)all);
    _exit(127);
}

struct process
process_start(const char *program, const char *const *arguments)
{
    struct process process;
    char path[PATH_MAX];
    int ends[2];

    write_path(path, program);
    if (pipe(ends) != 0)
        die(program, "no pipe");
    fflush(stdout);
    process.pid = fork();
    if (process.pid == 0) {
        close(ends[0]);
        become(path, arguments, ends[1]);
    }
    close(ends[1]);
    process.output = process.pid > 0 ? fdopen(ends[0], "r") : NULL;
    if (!process.output)
        die(program, "not started");
    return process;
}

void
process_read_line(struct process *process, char *line, int size)
{
    if (!fgets(line, size, process->output))
        die("a side", "ended without a word");
    line[strcspn(line, "\n")] = '\0';
}

void
process_kill(struct process *process)
{
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
    fclose(process->output);
}

void
process_wait(struct process *process)
{
    int status;

    if (waitpid(process->pid, &status, 0) != process->pid || status != 0)
        die("a side", "failed");
    fclose(process->output);
}

long
process_resident_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}
