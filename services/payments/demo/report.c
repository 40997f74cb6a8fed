#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

void
report_progress(const struct tally_counts *counts,
                const struct trouble *trouble)
{
    static unsigned tenth; /* the last one printed */
    unsigned calls = trouble->stage->options->calls;
    bool terminal = isatty(STDOUT_FILENO);
    unsigned now = counts->settled * 10 / calls;

    if (!terminal && now == tenth)
        return;
    tenth = now;
    printf("%s  %u of %u calls settled, %u attempts, %u replays, %u answers "
           "lost, %u servers killed%s",
           terminal ? "\r\033[K" : "", counts->settled, calls, counts->attempts,
           counts->replayed, proxy_cuts(trouble->stage->proxy), trouble->kills,
           terminal ? "" : "\n");
    fflush(stdout);
}

static void
print_count(const char *what, unsigned count)
{
    printf("  %-44s %10u\n", what, count);
}

static void
print_sum(const char *what, const struct audit_sum *sum)
{
    printf("  %-30s %12" PRId64 " %12" PRId64 " %+10" PRId64 "\n", what,
           sum->expected, sum->found, sum->found - sum->expected);
}

static void
print_story(const struct tally_counts *counts, const struct trouble *trouble,
            const struct audit *audit)
{
    unsigned calls = trouble->stage->options->calls;

    printf("\n");
    print_count("calls, each with a key of its own", calls);
    print_count("attempts that were made of them", counts->attempts);
    print_count("duplicates absorbed",
                counts->attempts - calls - audit->doubles);
    print_count("answers marked as replays", counts->replayed);
    print_count("calls refused for good", audit->refused);
    print_count("connections cut, their answers lost",
                proxy_cuts(trouble->stage->proxy));
    print_count("servers killed", trouble->kills);
    if (trouble->flushed)
        print_count("Redis flushed, and stopped",
                    trouble->flushed + trouble->silenced);
    if (trouble->crashed)
        print_count("PostgreSQL restarted with -m immediate", 1);
    print_count("calls that ended in doubt", counts->doubts);
    print_count("  of these: had happened, said the repeat", counts->happened);
    print_count("  of these: had not, the repeat decided", counts->had_not);
    print_count("repeats by hand after a plain failure", counts->by_hand);
}

void
report_table(const struct tally_counts *counts, const struct trouble *trouble,
             const struct audit *audit, bool holds)
{
    if (isatty(STDOUT_FILENO))
        printf("\n");
    print_story(counts, trouble, audit);
    printf("\n  %-30s %12s %12s %10s\n", "money", "expected", "found",
           "too much");
    print_sum("taken, by the balances", &audit->accounts);
    print_sum("taken, by the entries", &audit->entries);
    print_sum("paid out, by the provider", &audit->provider);
    printf("\n");
    print_count("effects missing", audit->missing);
    print_count("effects double", audit->doubles);
    print_count("effects after a final no", audit->forbidden);
    print_count("calls unresolved", audit->unresolved);
    print_count("repeats with another answer", counts->differ);
    if (audit->unresolved)
        printf("  the last trouble was: %s\n", counts->last_trouble);
    printf("\n%s\n", holds ? "Each call took effect once."
                           : "NOT each call took effect once.");
}
