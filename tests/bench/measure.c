#include "measure.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

double
rate_of(const struct measure *seen)
{
    return (double)seen->calls / seen->seconds;
}

double
cpu_per_call(const struct measure *seen)
{
    return seen->cpu_seconds / (double)seen->calls * 1e6;
}

int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double
cpu_of_self(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void
pass_seconds(double seconds)
{
    struct timespec t = {(time_t)seconds,
                         (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&t, &t) != 0)
        ;
}

/* A process's seconds with those of its children that ended, and its parent;
 * false when it is gone. */
static int
read_stat(int pid, int *parent, double *seconds)
{
    char path[64], line[1024], *rest;
    unsigned long user, kernel;
    long ended_user, ended_kernel;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (!file)
        return 0;
    rest = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    if (!rest ||
        sscanf(rest,
               ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
               parent, &user, &kernel, &ended_user, &ended_kernel) != 5)
        return 0;
    *seconds = ((double)(user + kernel) + (double)(ended_user + ended_kernel)) /
               (double)sysconf(_SC_CLK_TCK);
    return 1;
}

double
cpu_of(const int *pids, unsigned n)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    double sum = 0;

    while (proc && (entry = readdir(proc))) {
        int pid = atoi(entry->d_name), parent = 0;
        double seconds = 0;

        if (pid <= 0 || !read_stat(pid, &parent, &seconds))
            continue;
        for (unsigned i = 0; i < n; i++)
            if (pid == pids[i] || parent == pids[i]) {
                sum += seconds;
                break;
            }
    }
    if (proc)
        closedir(proc);
    return sum;
}

unsigned
histogram_bucket(uint64_t ns)
{
    unsigned exponent;

    if (ns < 32)
        return (unsigned)ns;
    exponent = 63 - (unsigned)__builtin_clzll(ns);
    return (exponent - 4) * 32 + (unsigned)((ns >> (exponent - 5)) & 31);
}

static uint64_t
value_of(unsigned bucket)
{
    if (bucket < 32)
        return bucket;
    return (uint64_t)(32 + bucket % 32) << (bucket / 32 - 1);
}

void
histogram_add(struct histogram *histogram, uint64_t ns)
{
    histogram->count[histogram_bucket(ns)]++;
}

void
histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->count[i] += from->count[i];
}

uint64_t
histogram_quantile(const struct histogram *histogram, double quantile)
{
    uint64_t all = 0, seen = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        all += histogram->count[i];
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->count[i];
        if (all && (double)seen >= quantile * (double)all)
            return value_of(i);
    }
    return 0;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double
median(const double *values, unsigned n)
{
    double *sorted = malloc((n ? n : 1) * sizeof *sorted), middle = NAN;

    if (sorted && n > 0) {
        memcpy(sorted, values, n * sizeof *values);
        qsort(sorted, n, sizeof *sorted, by_value);
        middle = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    }
    free(sorted);
    return middle;
}

void
report(const char *name, double value, const char *unit)
{
    printf("%s %.4g %s\n", name, value, unit);
    fflush(stdout);
}

void
report_goal(const char *name, double value, double target)
{
    printf("goal %s %.4g >= %.4g\n", name, value, target);
    fflush(stdout);
}

void
report_limit(const char *name, double value, double limit)
{
    printf("goal %s %.4g <= %.4g\n", name, value, limit);
    fflush(stdout);
}
