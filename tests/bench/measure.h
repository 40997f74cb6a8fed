#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a round of a benchmark saw. Times in nanoseconds. */
struct measure {
    uint64_t calls;
    double seconds;
    double cpu_seconds; /* user and system, of all who took part */
    uint64_t p50_ns, p99_ns;
};

double rate_of(const struct measure *seen);      /* calls/s */
double cpu_per_call(const struct measure *seen); /* us */

/* Latencies in 1/32 steps of a power of two: error under 3.2 %. One thread a
 * histogram; merge afterwards. */
#define HISTOGRAM_BUCKETS (64 * 32)
struct histogram {
    uint64_t count[HISTOGRAM_BUCKETS];
};

int64_t now_ns(void);     /* CLOCK_MONOTONIC */
double cpu_of_self(void); /* user and system seconds of this process */
double cpu_of(const int *pids, unsigned n); /* of others, and their children */
void pass_seconds(double seconds);

unsigned histogram_bucket(uint64_t ns);
void histogram_add(struct histogram *histogram, uint64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);
uint64_t histogram_quantile(const struct histogram *histogram, double quantile);

/* The median; keeps the order. NAN without values. */
double median(const double *values, unsigned n);

/* "name value unit" on standard output. */
void report(const char *name, double value, const char *unit);

/* "goal name value >= target", and with <= when less is better. */
void report_goal(const char *name, double value, double target);
void report_limit(const char *name, double value, double limit);

#ifdef __cplusplus
}
#endif

#endif
