#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include "audit.h"
#include "tally.h"
#include "trouble.h"

/* One line that lives: rewritten on a terminal, printed at every tenth of the
 * calls elsewhere. */
void report_progress(const struct tally_counts *counts,
                     const struct trouble *trouble);

/* The table at the end, and what it means. */
void report_table(const struct tally_counts *counts,
                  const struct trouble *trouble, const struct audit *audit,
                  bool holds);

#endif
