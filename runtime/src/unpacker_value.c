#include "unpacker.h"

#include "message_field.h"
#include "utf8.h"

#include <string.h>

enum wire_type
unpacker_wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        return WIRE_VARINT;
    }
    idem_assert_failed("a field has a type of protobuf-c", __FILE__, __LINE__);
}

void
unpacker_put_scalar(ProtobufCType type, uint64_t value, void *to)
{
    if (type == PROTOBUF_C_TYPE_SINT32) {
        uint32_t low = (uint32_t)value;

        value = (low >> 1) ^ (0 - (low & 1));
    } else if (type == PROTOBUF_C_TYPE_SINT64) {
        value = (value >> 1) ^ (0 - (value & 1));
    } else if (type == PROTOBUF_C_TYPE_BOOL) {
        value = value != 0;
    }

    uint32_t low = (uint32_t)value;

    if (field_value_size(type) == sizeof(low))
        memcpy(to, &low, sizeof(low));
    else
        memcpy(to, &value, sizeof(value));
}

static enum idem_status
put_string(struct unpacker *u, struct idem_bytes bytes, char **to)
{
    uint8_t *copy;

    if (bytes.size > 0 && memchr(bytes.data, 0, bytes.size))
        return unpacker_invalid(u, "a string with a NUL");
    if (!utf8_valid(bytes))
        return unpacker_invalid(u, "a string that is not UTF-8");

    enum idem_status status = unpacker_copy(u, bytes, &copy);

    if (status != IDEM_OK)
        return status;
    if (*to != u->field->default_value)
        unpacker_give_back(u, *to);
    *to = (char *)copy;
    return IDEM_OK;
}

static enum idem_status
put_bytes(struct unpacker *u, struct idem_bytes bytes, ProtobufCBinaryData *to)
{
    const ProtobufCBinaryData *usual = u->field->default_value;
    uint8_t *copy = NULL;

    if (u->in_place) {
        copy = bytes.size > 0 ? (uint8_t *)(uintptr_t)bytes.data : NULL;
    } else if (bytes.size > 0) {
        enum idem_status status = unpacker_copy(u, bytes, &copy);

        if (status != IDEM_OK)
            return status;
    }
    if (!usual || to->data != usual->data)
        unpacker_give_back(u, to->data);
    *to = (ProtobufCBinaryData){bytes.size, copy};
    return IDEM_OK;
}

/* Into the message that is there: the rules ask to merge (case B093). */
static enum idem_status
put_message(struct unpacker *u, struct idem_bytes bytes, ProtobufCMessage **to,
            unsigned depth)
{
    enum idem_status status = IDEM_OK;

    if (!*to)
        status = unpacker_make_message(u, u->field->descriptor, to);
    return status == IDEM_OK ? unpacker_read(u, *to, bytes, depth + 1) : status;
}

/* to is a value of the field's type: empty, the default, or an earlier one. */
enum idem_status
unpacker_put_value(struct unpacker *u, const struct wire_field *wire, void *to,
                   unsigned depth)
{
    if (u->field->type == PROTOBUF_C_TYPE_STRING)
        return put_string(u, wire->bytes, to);
    if (u->field->type == PROTOBUF_C_TYPE_BYTES)
        return put_bytes(u, wire->bytes, to);
    if (u->field->type == PROTOBUF_C_TYPE_MESSAGE)
        return put_message(u, wire->bytes, to, depth);
    unpacker_put_scalar(u->field->type, wire->value, to);
    return IDEM_OK;
}
