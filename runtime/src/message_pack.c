#include "message.h"

#include "message_field.h"
#include "utf8.h"

#include <string.h>

#define DEPTH_MAX 100 /* what the other side takes by default */

static enum idem_status check_message(const ProtobufCMessage *message,
                                      unsigned depth, struct idem_error *err);

static enum idem_status
broken(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
       const char *why, struct idem_error *err)
{
    return idem_fail(err, IDEM_INTERNAL, "%s.%s: %s", message->descriptor->name,
                     field->name, why);
}

static enum idem_status
check_string(const ProtobufCMessage *message,
             const ProtobufCFieldDescriptor *field, const char *text,
             struct idem_error *err)
{
    if (!text)
        return broken(message, field, "a string that is NULL", err);
    if (!utf8_valid(idem_bytes_of(text)))
        return broken(message, field, "a string that is not UTF-8", err);
    return IDEM_OK;
}

static enum idem_status
check_value(const ProtobufCMessage *message,
            const ProtobufCFieldDescriptor *field, const void *value,
            unsigned depth, struct idem_error *err)
{
    const ProtobufCMessage *inner;
    const ProtobufCBinaryData *bytes = value;

    if (field->type == PROTOBUF_C_TYPE_STRING)
        return check_string(message, field, *(char *const *)value, err);
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return bytes->len == 0 || bytes->data
                   ? IDEM_OK
                   : broken(message, field, "bytes that are NULL", err);
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return IDEM_OK;
    inner = *(const ProtobufCMessage *const *)value;
    if (!inner)
        return broken(message, field, "a message that is NULL", err);
    if (inner->descriptor != field->descriptor)
        return broken(message, field,
                      "a message of another type, or not initialised", err);
    return check_message(inner, depth + 1, err);
}

static enum idem_status
check_repeated(const ProtobufCMessage *message,
               const ProtobufCFieldDescriptor *field, unsigned depth,
               struct idem_error *err)
{
    const char *const *array = field_value(message, field);
    size_t count = field_count(message, field);
    enum idem_status status = IDEM_OK;

    if (count > 0 && !*array)
        return broken(message, field, "an array that is NULL", err);
    if (field_packable(field->type))
        return IDEM_OK;
    for (size_t i = 0; i < count && status == IDEM_OK; i++)
        status =
            check_value(message, field,
                        *array + i * field_value_size(field->type), depth, err);
    return status;
}

static enum idem_status
check_message(const ProtobufCMessage *message, unsigned depth,
              struct idem_error *err)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    enum idem_status status = IDEM_OK;

    if (depth > DEPTH_MAX)
        return idem_fail(err, IDEM_INTERNAL,
                         "%s: messages inside messages are over the limit of "
                         "%d",
                         type->name, DEPTH_MAX);
    for (unsigned i = 0; i < type->n_fields && status == IDEM_OK; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];

        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            status = check_repeated(message, field, depth, err);
        else if (!field_packable(field->type) && field_present(message, field))
            status = check_value(message, field, field_value(message, field),
                                 depth, err);
    }
    return status;
}

enum idem_status
idem_message_pack(const struct ProtobufCMessage *message,
                  struct idem_arena *arena, struct idem_bytes *bytes,
                  struct idem_error *err)
{
    if (!message->descriptor)
        return idem_fail(err, IDEM_INTERNAL, "a message is not initialised");

    enum idem_status status = check_message(message, 0, err);

    if (status != IDEM_OK)
        return status;

    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = idem_arena_alloc(arena, size);

    if (!packed)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "%s: no memory for %zu bytes",
                         message->descriptor->name, size);
    protobuf_c_message_pack(message, packed);
    *bytes = (struct idem_bytes){packed, size};
    return IDEM_OK;
}
