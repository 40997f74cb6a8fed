#include "store_postgres_array.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define KEPT (1 << 20) /* bytes: a rare large batch does not stay */

/* Array header: dimensions, has NULLs, element's type, elements, first index.
 */
enum head { DIMENSIONS, HAS_NULLS, TYPE, ELEMENTS, FIRST, HEAD };

static void
put(struct pg_arrays *arrays, const void *bytes, size_t size)
{
    IDEM_ASSERT(size <= arrays->capacity - arrays->size);
    if (size > 0)
        memcpy(arrays->data + arrays->size, bytes, size);
    arrays->size += size;
}

static void
put_word(struct pg_arrays *arrays, uint32_t word)
{
    uint32_t wire = htobe32(word);

    put(arrays, &wire, sizeof(wire));
}

static void
set_word(struct pg_arrays *arrays, enum head at, uint32_t word)
{
    uint32_t wire = htobe32(word);

    memcpy(arrays->data + arrays->start + at * sizeof(wire), &wire,
           sizeof(wire));
}

bool
pg_arrays_reserve(struct pg_arrays *arrays, size_t bytes)
{
    if (bytes > arrays->capacity || arrays->capacity > KEPT) {
        pg_arrays_fini(arrays);
        arrays->data = malloc(bytes);
        if (!arrays->data)
            return false;
        arrays->capacity = bytes;
    }
    arrays->size = 0;
    return true;
}

void
pg_arrays_fini(struct pg_arrays *arrays)
{
    free(arrays->data);
    memset(arrays, 0, sizeof(*arrays));
}

size_t
pg_array_room(size_t bytes)
{
    return sizeof(uint32_t) + bytes;
}

void
pg_array_begin(struct pg_arrays *arrays, enum pg_element element)
{
    const uint32_t words[HEAD] = {
        [DIMENSIONS] = 1, [TYPE] = element, [FIRST] = 1};

    arrays->start = arrays->size;
    arrays->elements = 0;
    arrays->has_null = false;
    for (int i = 0; i < HEAD; i++)
        put_word(arrays, words[i]);
}

void
pg_array_bytes(struct pg_arrays *arrays, struct idem_bytes bytes)
{
    put_word(arrays, (uint32_t)bytes.size);
    put(arrays, bytes.data, bytes.size);
    arrays->elements++;
}

void
pg_array_int(struct pg_arrays *arrays, int64_t number)
{
    uint64_t wire = htobe64((uint64_t)number);

    pg_array_bytes(arrays, (struct idem_bytes){(uint8_t *)&wire, sizeof(wire)});
}

void
pg_array_null(struct pg_arrays *arrays)
{
    set_word(arrays, HAS_NULLS, 1);
    arrays->has_null = true;
    put_word(arrays, UINT32_MAX);
    arrays->elements++;
}

static struct idem_bytes
end(struct pg_arrays *arrays)
{
    set_word(arrays, ELEMENTS, arrays->elements);
    return (struct idem_bytes){arrays->data + arrays->start,
                               arrays->size - arrays->start};
}

void
pg_array_end(struct pg_arrays *arrays, struct pg_arguments *arguments)
{
    pg_arguments_bytes(arguments, end(arrays));
}

void
pg_array_end_one(struct pg_arrays *arrays, struct pg_arguments *arguments)
{
    struct idem_bytes array = end(arrays);
    size_t head = ARRAY_HEAD + sizeof(uint32_t);

    IDEM_ASSERT(arrays->elements == 1);
    if (arrays->has_null)
        pg_arguments_null(arguments);
    else
        pg_arguments_bytes(arguments, (struct idem_bytes){array.data + head,
                                                          array.size - head});
}
