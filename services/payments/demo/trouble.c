#include "trouble.h"

/* Has this part of all calls settled? */
static bool
is_due(const struct trouble *trouble, unsigned settled, unsigned part,
       unsigned of)
{
    return (uint64_t)settled * of >=
           (uint64_t)trouble->stage->options->calls * part;
}

static bool
trouble_servers(struct trouble *trouble, unsigned settled)
{
    struct stage *stage = trouble->stage;
    unsigned kills = stage->options->kills;

    if (trouble->kills == kills ||
        !is_due(trouble, settled, trouble->kills + 1, kills + 1))
        return true;
    return stage_kill_server(stage, trouble->kills++ % stage->n_servers);
}

static bool
trouble_databases(struct trouble *trouble, unsigned settled)
{
    struct databases *databases = &trouble->stage->databases;

    if (!trouble->flushed && is_due(trouble, settled, 1, 4)) {
        trouble->flushed = true;
        return databases_flush_redis(databases);
    }
    if (!trouble->crashed && is_due(trouble, settled, 2, 4)) {
        trouble->crashed = true;
        return databases_crash_postgres(databases);
    }
    if (!trouble->silenced && is_due(trouble, settled, 3, 4)) {
        trouble->silenced = true;
        databases_stop_redis(databases);
    }
    return true;
}

bool
trouble_make(struct trouble *trouble, unsigned settled)
{
    if (!trouble_servers(trouble, settled))
        return false;
    return !trouble->stage->options->servers ||
           trouble_databases(trouble, settled);
}
