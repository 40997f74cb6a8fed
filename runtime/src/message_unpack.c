#include "message.h"

#include "message_field.h"
#include "unpacker.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_DEFAULT ((size_t)4 << 20)
#define DEPTH_DEFAULT 100
#define UNKNOWN_DEFAULT ((size_t)64 << 10)
#define MEMORY_LEAST ((size_t)64 << 10)
#define SEEN_FEW 256 /* fields; a type with more costs an allocation */

/* --- Fields --- */

/* The case that was set before and what it holds are gone. */
static void
leave_case(struct unpacker *u, ProtobufCMessage *message, uint32_t number)
{
    unsigned index = field_find(message->descriptor, number, 0);

    if (index == message->descriptor->n_fields)
        return; /* none was set */

    const ProtobufCFieldDescriptor *old = &message->descriptor->fields[index];
    void *value = field_member(message, old);

    if (old->type == PROTOBUF_C_TYPE_STRING &&
        *(char **)value != old->default_value)
        unpacker_give_back(u, *(char **)value);
    if (old->type == PROTOBUF_C_TYPE_BYTES)
        unpacker_give_back(u, ((ProtobufCBinaryData *)value)->data);
    if (old->type == PROTOBUF_C_TYPE_MESSAGE && !u->arena)
        protobuf_c_message_free_unpacked(*(ProtobufCMessage **)value, NULL);
}

static void
enter_case(struct unpacker *u, ProtobufCMessage *message)
{
    void *which = (char *)message + u->field->quantifier_offset;
    uint32_t number;

    memcpy(&number, which, sizeof(number));
    if (number == u->field->id)
        return;
    leave_case(u, message, number);
    memset(field_member(message, u->field), 0,
           field_value_size(u->field->type));
    memcpy(which, &u->field->id, sizeof(number));
}

static enum idem_status
take_single(struct unpacker *u, ProtobufCMessage *message,
            const struct wire_field *wire, unsigned depth)
{
    const ProtobufCFieldDescriptor *field = u->field;

    if (field_in_oneof(field)) {
        enter_case(u, message);
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL &&
               field->quantifier_offset) {
        const protobuf_c_boolean has = 1;

        memcpy((char *)message + field->quantifier_offset, &has, sizeof(has));
    }
    return unpacker_put_value(u, wire, field_member(message, field), depth);
}

static enum idem_status
append(struct unpacker *u, ProtobufCMessage *message,
       const struct wire_field *wire, unsigned depth)
{
    const ProtobufCFieldDescriptor *field = u->field;
    size_t *count = (void *)((char *)message + field->quantifier_offset);
    size_t size = field_value_size(field->type);
    void **array = field_member(message, field);
    enum idem_status status = unpacker_make_room(u, array, *count, 1, size);

    if (status != IDEM_OK)
        return status;

    void *entry = (char *)*array + *count * size;

    /* Counted before it is read: a tree that is freed half way is whole. */
    memset(entry, 0, size);
    ++*count;
    return unpacker_put_value(u, wire, entry, depth);
}

static size_t
packed_count(struct idem_bytes bytes, enum wire_type type)
{
    size_t count = 0;

    if (type == WIRE_32BIT)
        return bytes.size / 4;
    if (type == WIRE_64BIT)
        return bytes.size / 8;
    for (size_t i = 0; i < bytes.size; i++)
        count += bytes.data[i] < 0x80;
    return count;
}

static enum idem_status
append_packed(struct unpacker *u, ProtobufCMessage *message,
              struct idem_bytes bytes)
{
    const ProtobufCFieldDescriptor *field = u->field;
    size_t *count = (void *)((char *)message + field->quantifier_offset);
    size_t size = field_value_size(field->type);
    void **array = field_member(message, field);
    struct wire_field value = {.type = unpacker_wire_type(field->type)};
    struct wire_reader reader = wire_reader_of(bytes);
    enum idem_status status = unpacker_make_room(
        u, array, *count, packed_count(bytes, value.type), size);

    while (status == IDEM_OK && !wire_at_end(&reader)) {
        const char *wrong = wire_read_value(&reader, &value);

        if (wrong)
            return unpacker_invalid(u, wrong);
        unpacker_put_scalar(field->type, value.value,
                            (char *)*array + *count * size);
        ++*count;
    }
    return status;
}

static enum idem_status
take_known(struct unpacker *u, ProtobufCMessage *message,
           const struct wire_field *wire, unsigned depth)
{
    bool repeated = u->field->label == PROTOBUF_C_LABEL_REPEATED;

    if (wire->type == unpacker_wire_type(u->field->type))
        return repeated ? append(u, message, wire, depth)
                        : take_single(u, message, wire, depth);
    if (repeated && wire->type == WIRE_BYTES && field_packable(u->field->type))
        return append_packed(u, message, wire->bytes);
    return unpacker_invalid(u, "a wire type that is not the field's");
}

static enum idem_status
take_unknown(struct unpacker *u, ProtobufCMessage *message,
             const struct wire_field *wire)
{
    void *array = message->unknown_fields;
    size_t size = wire->raw.size + 1; /* the tag is a byte or more */
    uint8_t *copy;

    if (size > u->unknown_left)
        return unpacker_over_limit(
            u, "unknown fields", u->limits.max_unknown - u->unknown_left + size,
            u->limits.max_unknown);
    u->unknown_left -= size;

    enum idem_status status =
        unpacker_make_room(u, &array, message->n_unknown_fields, 1,
                           sizeof(ProtobufCMessageUnknownField));

    if (status != IDEM_OK)
        return status;
    message->unknown_fields = array;
    status = unpacker_copy(u, wire->raw, &copy);
    if (status != IDEM_OK)
        return status;
    message->unknown_fields[message->n_unknown_fields++] =
        (ProtobufCMessageUnknownField){
            .tag = wire->number,
            .wire_type = (ProtobufCWireType)wire->type,
            .len = wire->raw.size,
            .data = copy,
        };
    return IDEM_OK;
}

/* --- Messages --- */

static enum idem_status
check_required(struct unpacker *u, const uint64_t *seen)
{
    for (unsigned i = 0; i < u->type->n_fields; i++) {
        u->field = &u->type->fields[i];
        if (u->field->label == PROTOBUF_C_LABEL_REQUIRED &&
            !(seen[i / 64] & (UINT64_C(1) << (i % 64))))
            return unpacker_invalid(u, "a required field is missing");
    }
    return IDEM_OK;
}

static enum idem_status
take_fields(struct unpacker *u, ProtobufCMessage *message,
            struct idem_bytes bytes, unsigned depth, uint64_t *seen)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    struct wire_reader reader = wire_reader_of(bytes);
    enum idem_status status = IDEM_OK;
    unsigned index = 0;

    while (status == IDEM_OK && !wire_at_end(&reader)) {
        struct wire_field wire;

        u->type = type;
        u->field = NULL;

        const char *wrong = wire_read_field(&reader, &wire);

        if (wrong)
            return unpacker_invalid(u, wrong);
        index = field_find(type, wire.number, index);
        if (index < type->n_fields) {
            u->field = &type->fields[index];
            seen[index / 64] |= UINT64_C(1) << (index % 64);
            status = take_known(u, message, &wire, depth);
        } else {
            status = take_unknown(u, message, &wire);
        }
    }
    return status;
}

/* A required field must be in each copy of a sub-message that comes twice: who
 * splits one in two is refused, which is less than the rules allow. */
enum idem_status
unpacker_read(struct unpacker *u, ProtobufCMessage *message,
              struct idem_bytes bytes, unsigned depth)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    uint64_t few[SEEN_FEW / 64] = {0};
    uint64_t *many = NULL;

    if (depth > u->limits.max_depth)
        return idem_fail(u->err, IDEM_INVALID_ARGUMENT,
                         "%s: messages inside messages are over the limit of "
                         "%u",
                         type->name, u->limits.max_depth);
    if (type->n_fields > SEEN_FEW)
        many = calloc(type->n_fields / 64 + 1, sizeof(*many));
    if (type->n_fields > SEEN_FEW && !many)
        return unpacker_refuse(u, IDEM_RESOURCE_EXHAUSTED,
                               "no memory to unpack it");

    enum idem_status status =
        take_fields(u, message, bytes, depth, many ? many : few);

    u->type = type;
    if (status == IDEM_OK)
        status = check_required(u, many ? many : few);
    free(many);
    return status;
}

static void
set_limits(struct unpacker *u, const struct idem_message_limits *limits)
{
    if (limits)
        u->limits = *limits;
    if (u->limits.max_size == 0)
        u->limits.max_size = SIZE_DEFAULT;
    if (u->limits.max_depth == 0)
        u->limits.max_depth = DEPTH_DEFAULT;
    if (u->limits.max_unknown == 0)
        u->limits.max_unknown = UNKNOWN_DEFAULT;
    u->unknown_left = u->limits.max_unknown;
    u->memory_limit = u->limits.max_size > SIZE_MAX / MESSAGE_MEMORY_FACTOR
                          ? SIZE_MAX
                          : u->limits.max_size * MESSAGE_MEMORY_FACTOR;
    if (u->memory_limit < MEMORY_LEAST)
        u->memory_limit = MEMORY_LEAST;
    u->memory_left = u->memory_limit;
}

static enum idem_status
unpack(struct unpacker *u, struct idem_bytes bytes,
       const struct idem_message_limits *limits, ProtobufCMessage **message)
{
    ProtobufCMessage *made = NULL;

    set_limits(u, limits);
    if (bytes.size > u->limits.max_size)
        return unpacker_over_limit(u, "size", bytes.size, u->limits.max_size);

    enum idem_status status = unpacker_make_message(u, u->type, &made);

    if (status == IDEM_OK)
        status = unpacker_read(u, made, bytes, 0);
    if (status == IDEM_OK)
        *message = made;
    else if (made && !u->arena)
        protobuf_c_message_free_unpacked(made, NULL);
    return status;
}

enum idem_status
message_unpack_heap(const struct ProtobufCMessageDescriptor *type,
                    struct idem_bytes bytes,
                    const struct idem_message_limits *limits,
                    struct ProtobufCMessage **message, struct idem_error *err)
{
    struct unpacker u = {.type = type, .err = err};

    return unpack(&u, bytes, limits, message);
}

enum idem_status
message_unpack_in_place(const struct ProtobufCMessageDescriptor *type,
                        struct idem_bytes bytes,
                        const struct idem_message_limits *limits,
                        struct idem_arena *arena,
                        struct ProtobufCMessage **message,
                        struct idem_error *err)
{
    struct unpacker u = {
        .arena = arena, .in_place = true, .type = type, .err = err};

    return unpack(&u, bytes, limits, message);
}

enum idem_status
idem_message_unpack(const struct ProtobufCMessageDescriptor *type,
                    struct idem_bytes bytes,
                    const struct idem_message_limits *limits,
                    struct idem_arena *arena, struct ProtobufCMessage **message,
                    struct idem_error *err)
{
    struct unpacker u = {.arena = arena, .type = type, .err = err};

    return unpack(&u, bytes, limits, message);
}
