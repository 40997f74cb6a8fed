#ifndef STORE_POSTGRES_ARRAY_H
#define STORE_POSTGRES_ARRAY_H

#include "store_postgres_arguments.h"

/* One-dimensional arrays as binary parameters, one behind the other in a buffer
 * that is used again. What it will hold is reserved before, so that a pointer
 * into it stays right. */

#define ARRAY_HEAD 20 /* bytes before the elements */

/* PostgreSQL's own numbers of the elements' types. */
enum pg_element {
    PG_ELEMENT_BYTES = 17,
    PG_ELEMENT_INT = 20,
    PG_ELEMENT_TEXT = 25,
    PG_ELEMENT_UUID = 2950,
};

struct pg_arrays {
    uint8_t *data;
    size_t size, capacity;
    size_t start; /* of the array that is being built */
    uint32_t elements;
    bool has_null;
};

/* Empty it, and make room for so many bytes. False: out of memory. */
bool pg_arrays_reserve(struct pg_arrays *arrays, size_t bytes) IDEM_MUST_CHECK;
void pg_arrays_fini(struct pg_arrays *arrays);

/* What an element takes. */
size_t pg_array_room(size_t bytes);

void pg_array_begin(struct pg_arrays *arrays, enum pg_element element);
void pg_array_bytes(struct pg_arrays *arrays, struct idem_bytes bytes);
void pg_array_int(struct pg_arrays *arrays, int64_t number);
void pg_array_null(struct pg_arrays *arrays);

/* Add it to the arguments, as a whole or, of one that has one element, that by
 * itself; good until the next reserve. */
void pg_array_end(struct pg_arrays *arrays, struct pg_arguments *arguments);
void pg_array_end_one(struct pg_arrays *arrays, struct pg_arguments *arguments);

#endif
