#include "inflow.h"

#define HALF_KEEP 65536 /* a larger half is given back when it is read */

void
inflow_fini(struct inflow *inflow)
{
    backlog_fini(&inflow->filling);
    backlog_fini(&inflow->reading);
}

bool
inflow_put(struct inflow *inflow, struct idem_bytes message, bool squeezed)
{
    return backlog_put(&inflow->filling, message, squeezed);
}

bool
inflow_next(struct inflow *inflow, struct idem_bytes *message, bool *squeezed)
{
    return backlog_next(&inflow->reading, message, squeezed);
}

bool
inflow_turn(struct inflow *inflow)
{
    struct backlog through = inflow->reading;

    if (inflow->filling.size == 0)
        return false;
    inflow->reading = inflow->filling;
    backlog_clear(&through, HALF_KEEP);
    inflow->filling = through;
    return true;
}
