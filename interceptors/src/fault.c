#include "fault.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAULTS_MAX 16
#define POINT_MAX 64

enum action { KILL, STOP, ERROR, DELAY };

struct fault {
    char point[POINT_MAX];
    unsigned nth; /* 0: every time */
    unsigned reached;
    enum action action;
    long delay_ms;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault faults[FAULTS_MAX];
static unsigned n_faults;
static int log_fd = -1;

static void
reject(const char *text)
{
    fprintf(stderr, "idem: IDEM_FAULT: not point:nth:action: %s\n", text);
    abort();
}

static void
read_action(struct fault *fault, const char *text)
{
    if (strcmp(text, "kill") == 0)
        fault->action = KILL;
    else if (strcmp(text, "stop") == 0)
        fault->action = STOP;
    else if (strcmp(text, "error") == 0)
        fault->action = ERROR;
    else if (sscanf(text, "delay=%ld", &fault->delay_ms) == 1)
        fault->action = DELAY;
    else
        reject(text);
}

static void
read_fault(const char *text)
{
    struct fault *fault = &faults[n_faults];
    char nth[16], action[32];

    memset(fault, 0, sizeof *fault);
    if (n_faults == FAULTS_MAX ||
        sscanf(text, "%63[^:]:%15[^:]:%31s", fault->point, nth, action) != 3)
        reject(text);
    if (strcmp(nth, "*") != 0 && sscanf(nth, "%u", &fault->nth) != 1)
        reject(text);
    read_action(fault, action);
    n_faults++;
}

static void
read_plan(const char *plan)
{
    char copy[1024], *rest = copy, *text;

    n_faults = 0;
    if (!plan)
        return;
    snprintf(copy, sizeof copy, "%s", plan);
    while ((text = strsep(&rest, ",")))
        if (*text)
            read_fault(text);
}

static void
open_log(const char *path)
{
    if (log_fd >= 0)
        close(log_fd);
    log_fd = -1;
    if (path)
        log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void
read_environment(void)
{
    read_plan(getenv("IDEM_FAULT"));
    open_log(getenv("IDEM_FAULT_LOG"));
}

static bool
due(struct fault *fault, const char *point)
{
    if (strcmp(fault->point, point) != 0)
        return false;
    fault->reached++;
    return fault->nth == 0 || fault->nth == fault->reached;
}

static bool
act(const struct fault *fault)
{
    struct timespec pause = {fault->delay_ms / 1000,
                             fault->delay_ms % 1000 * 1000000};

    switch (fault->action) {
    case KILL:
        kill(getpid(), SIGKILL);
        pause.tv_sec = 60; /* it comes, on whatever thread */
        nanosleep(&pause, NULL);
        return false;
    case STOP:
        kill(getpid(), SIGSTOP);
        return false;
    case DELAY:
        nanosleep(&pause, NULL);
        return false;
    case ERROR:
        break;
    }
    return true;
}

static void
write_log(const char *point)
{
    char line[POINT_MAX + 1];
    int size = snprintf(line, sizeof line, "%s\n", point);

    if (log_fd >= 0 && write(log_fd, line, (size_t)size) != size)
        reject("IDEM_FAULT_LOG cannot be written");
}

bool
fault_reached(const char *point)
{
    struct fault now = {.action = ERROR};
    bool any = false;

    pthread_once(&once, read_environment);
    write_log(point);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < n_faults; i++) {
        if (due(&faults[i], point)) {
            now = faults[i];
            any = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return any && act(&now);
}

void
fault_set(const char *plan)
{
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    read_plan(plan);
    pthread_mutex_unlock(&lock);
}

void
fault_log(const char *path)
{
    pthread_once(&once, read_environment);
    open_log(path);
}
