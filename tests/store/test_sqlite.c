#include "sqlite_world.h"

/* The suite on the embedded authority, by a clock that the tests move. */

int
main(void)
{
    struct sqlite_world world;
    int failed;

    sqlite_world_open(&world);
    failed = suite_run(&world.factory);
    sqlite_world_close(&world);
    return failed;
}
