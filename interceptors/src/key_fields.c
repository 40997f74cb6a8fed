#include "hex.h"

#include <idem/digest.h>
#include <idem/key.h>
#include <idem/reason.h>

#include <protobuf-c/protobuf-c.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The key that is in the request: SHA-256 over, for each field of the method's
 * key, its path and its value, each length-prefixed. A value is written so that
 * widening a field (int32 to int64) keeps the key: numbers as decimal text. */

#define NUMBER_MAX 32 /* bytes of a number's text */

/* A field and the message that it is in. */
struct place {
    const ProtobufCMessage *message;
    const ProtobufCFieldDescriptor *field;
};

/* What the digest takes of a value. text is used by numbers only. */
struct value {
    struct idem_bytes bytes;
    char text[NUMBER_MAX];
};

static const void *
member(struct place place)
{
    return (const uint8_t *)place.message + place.field->offset;
}

/* Write a value. These say whether it is zero, which cannot be told from not
 * set: the generator takes no optional field for a key. */

static bool
set_signed(struct value *value, int64_t number)
{
    snprintf(value->text, sizeof(value->text), "n%" PRId64, number);
    value->bytes = idem_bytes_of(value->text);
    return number == 0;
}

static bool
set_unsigned(struct value *value, uint64_t number)
{
    snprintf(value->text, sizeof(value->text), "n%" PRIu64, number);
    value->bytes = idem_bytes_of(value->text);
    return number == 0;
}

/* false and an enum's first value are choices, not absences. */
static bool
set_choice(struct value *value, int64_t number)
{
    set_signed(value, number);
    return false;
}

static bool
set_bytes(struct value *value, struct idem_bytes bytes)
{
    value->bytes = bytes;
    return bytes.size == 0;
}

static bool
read_value(struct value *value, struct place place)
{
    const void *at = member(place);
    const ProtobufCBinaryData *binary = at;

    switch (place.field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return set_signed(value, *(const int32_t *)at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return set_signed(value, *(const int64_t *)at);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return set_unsigned(value, *(const uint32_t *)at);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return set_unsigned(value, *(const uint64_t *)at);
    case PROTOBUF_C_TYPE_BOOL:
        return set_choice(value, *(const protobuf_c_boolean *)at != 0);
    case PROTOBUF_C_TYPE_ENUM:
        return set_choice(value, *(const int32_t *)at);
    case PROTOBUF_C_TYPE_STRING:
        return set_bytes(value, idem_bytes_of(*(const char *const *)at));
    case PROTOBUF_C_TYPE_BYTES:
        return set_bytes(value, (struct idem_bytes){binary->data, binary->len});
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_MESSAGE:
        break;
    }
    IDEM_ASSERT(!"the generator takes no such field for a key");
    return true;
}

/* Walk to the field. False: a message on the way is not set. */
static bool
find(struct place *place, const struct idem_key_field *path,
     const ProtobufCMessage *request)
{
    place->message = request;
    for (unsigned i = 0; i < path->depth; i++) {
        if (i > 0)
            place->message = *(const ProtobufCMessage *const *)member(*place);
        if (!place->message)
            return false;
        place->field = protobuf_c_message_descriptor_get_field(
            place->message->descriptor, path->numbers[i]);
        IDEM_ASSERT(place->field &&
                    place->field->label != PROTOBUF_C_LABEL_REPEATED);
    }
    return true;
}

static bool
add_field(struct idem_sha256 *sha, const struct idem_key_field *path,
          const ProtobufCMessage *request)
{
    struct place place = {NULL, NULL};
    struct value value;

    if (!find(&place, path, request) || read_value(&value, place))
        return false;

    idem_sha256_add_part(sha, idem_bytes_of(path->path));
    idem_sha256_add_part(sha, value.bytes);
    return true;
}

enum idem_status
idem_key_from_fields(char *text, const struct idem_method *method,
                     const struct ProtobufCMessage *request,
                     struct idem_error *err)
{
    struct idem_sha256 *sha = idem_sha256_new();
    uint8_t hash[IDEM_SHA256_SIZE];
    const char *missing = NULL;

    idem_sha256_add_part(sha, idem_bytes_of("idem-fields1"));
    for (unsigned i = 0; i < method->n_key_fields && !missing; i++)
        if (!add_field(sha, &method->key_fields[i], request))
            missing = method->key_fields[i].path;
    idem_sha256_finish(sha, hash);
    if (missing)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING,
                                "the key is made of %s, which is not set",
                                missing);

    memcpy(text, "idf_", 4);
    hex_write(text + 4, hash, sizeof(hash));
    return IDEM_OK;
}
