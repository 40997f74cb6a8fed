#ifndef SQLITE_WORLD_H
#define SQLITE_WORLD_H

#include "suite_call.h"

#include "fake_clock.h"
#include "tempdir.h"

/* A file, a clock and a factory of stores on it. */
struct sqlite_world {
    struct fake_clock clock;
    struct tempdir folder;
    char path[TEMPDIR_MAX + 32];
    int64_t maintain_every_ms; /* of the stores that are opened; -1: never */
    int64_t busy_ms;
    struct suite_factory factory;
    struct suite suite; /* a store on it, where a test has opened one */
};

/* The factory is for suite_run; the suite has no store yet. */
void sqlite_world_open(struct sqlite_world *world);
void sqlite_world_close(struct sqlite_world *world);

/* Open the suite's store; close it when it is open. */
void sqlite_world_start(struct sqlite_world *world);
void sqlite_world_stop(struct sqlite_world *world);

/* One number from the file, by a connection of its own. */
int64_t sqlite_world_number(const struct sqlite_world *world, const char *sql);

/* Run a statement in a handler's transaction by sqlite's own means. */
void sqlite_world_run_raw(struct idem_tx *tx, const char *sql);

/* cmocka fixtures: a world with an open store. */
int sqlite_world_set_up(void **state);
int sqlite_world_tear_down(void **state);

#endif
