#ifndef MESSAGE_FIELD_H
#define MESSAGE_FIELD_H

#include <protobuf-c/protobuf-c.h>

#include <idem/base.h>

/* The members of a generated struct, found through its descriptor. Everything
 * about protobuf-c's layout is here. */

/* The index of a field number; n_fields: none. The hint and the next are
 * tried first: fields come in order as a rule. */
unsigned field_find(const ProtobufCMessageDescriptor *type, uint32_t number,
                    unsigned hint);

/* sizeof of one value in the struct or in a repeated field's array. */
size_t field_value_size(ProtobufCType type);

/* May come packed: every scalar but string and bytes. Any value is one. */
static inline bool
field_packable(ProtobufCType type)
{
    return type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_BYTES &&
           type != PROTOBUF_C_TYPE_MESSAGE;
}

static inline bool
field_in_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

static inline void *
field_member(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->offset;
}

static inline const void *
field_value(const ProtobufCMessage *message,
            const ProtobufCFieldDescriptor *field)
{
    return (const char *)message + field->offset;
}

/* Of a repeated field. */
size_t field_count(const ProtobufCMessage *message,
                   const ProtobufCFieldDescriptor *field);

/* Is it set, as far as its kind of presence says: a case of a oneof, a has_
 * flag, a pointer, a value that is not the default of proto3? */
bool field_present(const ProtobufCMessage *message,
                   const ProtobufCFieldDescriptor *field);

#endif
