#include "suite_call.h"

#include <stdlib.h>

/* What the group fixtures make a suite of. */
static const struct suite_factory *chosen;
static bool minted_keys;

int
suite_set_up(void **state)
{
    struct suite *suite = calloc(1, sizeof *suite);

    suite->factory = chosen;
    suite->minted = minted_keys;
    suite->store = chosen->open(chosen->with);
    *state = suite;
    return suite->store ? 0 : -1;
}

int
suite_tear_down(void **state)
{
    struct suite *suite = *state;

    idem_store_free(suite->store);
    free(suite);
    return 0;
}

static int
run_with(const struct suite_factory *factory, bool minted)
{
    chosen = factory;
    minted_keys = minted;
    return suite_run_arrows() + suite_run_fences() + suite_run_transactions() +
           suite_run_statements() + suite_run_races() + suite_run_settle() +
           suite_run_abandon() + suite_run_steps() + suite_run_probe() +
           suite_run_executions();
}

int
suite_run(const struct suite_factory *factory)
{
    int failed = suite_run_crashes(factory) + suite_run_everywhere(factory);

    failed += run_with(factory, true);
    failed += suite_run_sessions();
    failed += run_with(factory, false);
    return failed + suite_run_sql() + suite_run_keys();
}
