#include "pair.h"

#include <stdio.h>

void
pair_note(struct pair *pair, const struct measure *ours,
          const struct measure *peer)
{
    unsigned round = pair->rounds++;

    pair->ours[round] = rate_of(ours);
    pair->peers[round] = rate_of(peer);
    pair->ratio[round] = rate_of(ours) / rate_of(peer);
    pair->our_cpu[round] = cpu_per_call(ours);
    pair->peer_cpu[round] = cpu_per_call(peer);
    pair->cpu_ratio[round] = cpu_per_call(peer) / cpu_per_call(ours);
    pair->p50[round] = (double)ours->p50_ns / 1e6;
    pair->p99[round] = (double)ours->p99_ns / 1e6;
}

static void
report_median(const struct pair *pair, const char *prefix, const char *name,
              const char *suffix, const double *values, const char *unit)
{
    char full[96];

    snprintf(full, sizeof full, "%s.%s%s", prefix, name, suffix);
    report(full, median(values, pair->rounds), unit);
}

void
pair_report_peer(const struct pair *pair, const char *name, const char *peer)
{
    report_median(pair, peer, name, "", pair->peers, "calls/s");
    report_median(pair, peer, name, ".cpu", pair->peer_cpu, "us/call");
    report_median(pair, "ratio", name, "", pair->ratio, "x");
    report_median(pair, "ratio", name, ".cpu", pair->cpu_ratio, "x");
}

void
pair_report(const struct pair *pair, const char *name, const char *peer)
{
    report_median(pair, "once", name, "", pair->ours, "calls/s");
    report_median(pair, "once", name, ".p50", pair->p50, "ms");
    report_median(pair, "once", name, ".p99", pair->p99, "ms");
    report_median(pair, "once", name, ".cpu", pair->our_cpu, "us/call");
    pair_report_peer(pair, name, peer);
}

double
pair_ratio(const struct pair *pair)
{
    return median(pair->ratio, pair->rounds);
}

double
pair_cpu_ratio(const struct pair *pair)
{
    return median(pair->cpu_ratio, pair->rounds);
}
