#ifndef PAIR_H
#define PAIR_H

#include "measure.h"

#define PAIR_ROUNDS_MAX 5

/* Ours beside a peer, round by round, in the same run. Begins zeroed. */
struct pair {
    unsigned rounds;
    double ours[PAIR_ROUNDS_MAX], peers[PAIR_ROUNDS_MAX];       /* calls/s */
    double our_cpu[PAIR_ROUNDS_MAX], peer_cpu[PAIR_ROUNDS_MAX]; /* us/call */
    double ratio[PAIR_ROUNDS_MAX];     /* our calls/s over the peer's */
    double cpu_ratio[PAIR_ROUNDS_MAX]; /* the peer's CPU a call over ours */
    double p50[PAIR_ROUNDS_MAX], p99[PAIR_ROUNDS_MAX]; /* ours, ms */
};

/* A round more, of at most PAIR_ROUNDS_MAX. */
void pair_note(struct pair *pair, const struct measure *ours,
               const struct measure *peer);

/* Medians of the rounds: "once.name…" for ours, "peer.name…" for the peer,
 * "ratio.name…" for both. */
void pair_report(const struct pair *pair, const char *name, const char *peer);

/* The same without ours, where another pair has told of it. */
void pair_report_peer(const struct pair *pair, const char *name,
                      const char *peer);

/* The medians of the ratios. */
double pair_ratio(const struct pair *pair);
double pair_cpu_ratio(const struct pair *pair);

#endif
