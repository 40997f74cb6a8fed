#include "head_start.h"

/* A write, and the wake-up at its other end, take about 8 us of both processes:
 * less work than this is not worth one more of them. */
#define PART_NS 16000

/* For more than half of the time that the batch before took: it was the other
 * end's turn. */
static bool
has_waited(const struct head_start *head_start, int64_t now_ns)
{
    return 2 * (now_ns - head_start->ended_ns) > head_start->worked_ns;
}

/* With the wait behind it; 0: there was none. */
static int64_t
turn_before(const struct head_start *head_start, int64_t now_ns)
{
    return head_start->size > 0
               ? (now_ns - head_start->begun_ns) / head_start->size
               : 0;
}

/* What disturbs makes a turn longer, never shorter. */
static void
note_turn(struct head_start *head_start, int64_t ns)
{
    if (head_start->turn_ns == 0 || ns < head_start->turn_ns)
        head_start->turn_ns = ns;
    else
        head_start->turn_ns += (ns - head_start->turn_ns) / 8;
}

void
head_start_begin(struct head_start *head_start, int64_t now_ns)
{
    int64_t turn_ns = turn_before(head_start, now_ns);
    bool waited = has_waited(head_start, now_ns);

    if (head_start->given) {
        trial_judge(&head_start->trial,
                    !waited && turn_ns < head_start->turn_ns -
                                             head_start->turn_ns / 8);
    } else if (head_start->worked_ns >= PART_NS) {
        if (waited)
            note_turn(head_start, turn_ns);
        trial_pass(&head_start->trial);
    }
    head_start->wanted =
        waited && head_start->turn_ns > 0 && trial_is_on(&head_start->trial);
    head_start->given = false;
    head_start->begun_ns = head_start->left_ns = now_ns;
}

bool
head_start_due(struct head_start *head_start, int64_t now_ns)
{
    if (!head_start->wanted || now_ns - head_start->left_ns < PART_NS)
        return false;
    head_start->left_ns = now_ns;
    head_start->given = true;
    return true;
}

void
head_start_end(struct head_start *head_start, unsigned size, int64_t now_ns)
{
    head_start->size = size;
    head_start->ended_ns = now_ns;
    head_start->worked_ns = now_ns - head_start->begun_ns;
}
