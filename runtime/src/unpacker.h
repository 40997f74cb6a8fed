#ifndef UNPACKER_H
#define UNPACKER_H

#include <protobuf-c/protobuf-c.h>

#include "message.h"
#include "message_wire.h"

/* An unpacker of our own, into protobuf-c's structs. libprotobuf-c's recurses
 * without limit, cuts strings at NUL, takes any bytes for UTF-8, has no bound
 * on memory and merges two copies of a sub-message wrongly (cases B026, B086,
 * B089, B093, B095; 3 tests of protobuf's conformance suite). Here each
 * occurrence of a sub-message is read into the one that is there, which is what
 * the rules of protobuf ask for.
 *
 * One unpacking, on the stack of one thread. Parts: unpacker.c memory and
 * errors, unpacker_value.c values, message_unpack.c fields and messages. */
struct unpacker {
    struct idem_arena *arena; /* NULL: the heap */
    bool in_place; /* fields of bytes point into what is read; arena only */
    struct idem_message_limits limits;
    size_t memory_left, memory_limit;
    size_t unknown_left;
    const ProtobufCMessageDescriptor *type; /* where we are, for the error */
    const ProtobufCFieldDescriptor *field;  /* NULL: no field of it */
    struct idem_error *err;
};

/* Fail with "type.field: why". */
enum idem_status unpacker_refuse(struct unpacker *u, enum idem_status status,
                                 const char *why);
enum idem_status unpacker_invalid(struct unpacker *u, const char *why);
enum idem_status unpacker_over_limit(struct unpacker *u, const char *what,
                                     size_t size, size_t limit);

/* Memory of the message. What is given back is freed on the heap only. */
void unpacker_give_back(const struct unpacker *u, void *memory);

/* With a NUL behind. */
enum idem_status unpacker_copy(struct unpacker *u, struct idem_bytes bytes,
                               uint8_t **copy);
enum idem_status unpacker_make_message(struct unpacker *u,
                                       const ProtobufCMessageDescriptor *type,
                                       ProtobufCMessage **message);

/* Room in an array for more entries behind count of them. */
enum idem_status unpacker_make_room(struct unpacker *u, void **array,
                                    size_t count, size_t more, size_t size);

/* What a field's type looks like on the wire, not packed. */
enum wire_type unpacker_wire_type(ProtobufCType type);
void unpacker_put_scalar(ProtobufCType type, uint64_t value, void *to);

/* Read into a value of u->field's type that is empty, the default, or an
 * earlier one. */
enum idem_status unpacker_put_value(struct unpacker *u,
                                    const struct wire_field *wire, void *to,
                                    unsigned depth);

/* Read the fields into a message that is initialised. */
enum idem_status unpacker_read(struct unpacker *u, ProtobufCMessage *message,
                               struct idem_bytes bytes, unsigned depth);

#endif
