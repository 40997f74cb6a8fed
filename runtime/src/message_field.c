#include "message_field.h"

#include <string.h>

unsigned
field_find(const ProtobufCMessageDescriptor *type, uint32_t number,
           unsigned hint)
{
    unsigned low = 0, high = type->n_fields;

    for (unsigned i = hint; i < type->n_fields && i < hint + 2; i++)
        if (type->fields[i].id == number)
            return i;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (type->fields[middle].id == number)
            return middle;
        if (type->fields[middle].id < number)
            low = middle + 1;
        else
            high = middle;
    }
    return type->n_fields;
}

size_t
field_value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    }
    idem_assert_failed("a field has a type of protobuf-c", __FILE__, __LINE__);
}

size_t
field_count(const ProtobufCMessage *message,
            const ProtobufCFieldDescriptor *field)
{
    size_t count;

    memcpy(&count, (const char *)message + field->quantifier_offset,
           sizeof(count));
    return count;
}

static bool
all_zero(const uint8_t *bytes, size_t size)
{
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    return size == 0;
}

/* proto3 without a word: what differs from zero is there. By its bits, so that
 * -0.0 is a value of its own. */
static bool
differs_from_zero(const void *value, const ProtobufCFieldDescriptor *field)
{
    const char *text;
    ProtobufCBinaryData bytes;

    if (field->type == PROTOBUF_C_TYPE_STRING) {
        memcpy(&text, value, sizeof(text));
        return text && text[0];
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        memcpy(&bytes, value, sizeof(bytes));
        return bytes.len > 0;
    }
    return !all_zero(value, field_value_size(field->type));
}

static bool
flag_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    protobuf_c_boolean has;

    memcpy(&has, (const char *)message + field->quantifier_offset, sizeof(has));
    return has != 0;
}

static bool
pointer_set(const void *value, const ProtobufCFieldDescriptor *field)
{
    const void *pointer;

    memcpy(&pointer, value, sizeof(pointer));
    return pointer && pointer != field->default_value;
}

bool
field_present(const ProtobufCMessage *message,
              const ProtobufCFieldDescriptor *field)
{
    const void *value = field_value(message, field);

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return field_count(message, field) > 0;
    if (field->label == PROTOBUF_C_LABEL_REQUIRED)
        return true;
    if (field_in_oneof(field)) {
        uint32_t which;

        memcpy(&which, (const char *)message + field->quantifier_offset,
               sizeof(which));
        return which == field->id;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return pointer_set(value, field);
    if (field->label == PROTOBUF_C_LABEL_NONE)
        return differs_from_zero(value, field);
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return pointer_set(value, field);
    return flag_set(message, field);
}
