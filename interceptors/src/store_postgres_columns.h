#ifndef STORE_POSTGRES_COLUMNS_H
#define STORE_POSTGRES_COLUMNS_H

#include "store_postgres_array.h"
#include "store_postgres_slot.h"

/* Slots as the parameters of SQL_EACH_… and SQL_ONE_…: a column a parameter. */

/* Some slots, and those of them that one statement is sent for. */
struct pg_chosen {
    const struct pg_slot *slots;
    unsigned n;
    enum slot_step step;
    bool opaque;
    bool alone; /* it is one, and its parameters are no arrays */
};

bool pg_chosen_has(const struct pg_chosen *chosen, const struct pg_slot *slot);

/* Bytes that all columns of all these slots take at most. */
size_t pg_columns_room(const struct pg_slot *slots, unsigned n);

/* Fill the parameters, in the order of the slots; they live in the arrays. */
void pg_columns(struct pg_arguments *arguments, struct pg_arrays *arrays,
                const struct pg_chosen *chosen);

#endif
