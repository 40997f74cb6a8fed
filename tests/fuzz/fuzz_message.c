#include "fuzz.h"

#include "arena.h"
#include "message.h"
#include "message_field.h"

#include <idem/fingerprint.h>

#include <protobuf-c/protobuf-c.h>

#include <string.h>

#include "shapes.pb-c.h"

/* The unpacker of requests: what it takes can be packed, says the same once
 * more, and has the same fingerprint; its memory is bounded (case B089). */

#define MAX_SIZE 16384
#define MAX_DEPTH 20
#define MEMORY_MIN 65536
#define ROUNDING 4096 /* of arena slabs, beside what the message takes */

static const struct idem_message_limits limits = {
    .max_size = MAX_SIZE, .max_depth = MAX_DEPTH, .max_unknown = 512};

static const struct idem_map_field maps[] = {
    {&shapes__v1__all__descriptor, 40},
    {&shapes__v1__all__descriptor, 41},
};
static const struct idem_method method = {.maps = maps, .n_maps = 2};

static struct idem_arena *
new_arena(void)
{
    struct idem_arena *arena = arena_new(1024, 0);

    IDEM_ASSERT(arena);
    return arena;
}

static void forget_signs_of_zero(ProtobufCMessage *message);

static bool
is_zero(const void *value, ProtobufCType type)
{
    float narrow;
    double wide;

    if (type == PROTOBUF_C_TYPE_FLOAT) {
        memcpy(&narrow, value, sizeof(narrow));
        return narrow == 0;
    }
    if (type != PROTOBUF_C_TYPE_DOUBLE)
        return false;
    memcpy(&wide, value, sizeof(wide));
    return wide == 0;
}

static void
forget_in_field(ProtobufCMessage *message,
                const ProtobufCFieldDescriptor *field)
{
    void *value = field_member(message, field);
    ProtobufCMessage **inner = value;
    size_t count = 1;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        inner = *(ProtobufCMessage ***)value;
        count = field_count(message, field);
    } else if (!field_present(message, field)) {
        return;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        for (size_t i = 0; i < count; i++)
            forget_signs_of_zero(inner[i]);
    else if (field->label == PROTOBUF_C_LABEL_NONE &&
             is_zero(value, field->type))
        memset(value, 0, field_value_size(field->type));
}

/* libprotobuf-c's packer leaves out a -0.0 that has no presence; to the
 * fingerprint, as to other packers, it is another value than 0. */
static void
forget_signs_of_zero(ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    for (unsigned i = 0; i < type->n_fields; i++)
        forget_in_field(message, &type->fields[i]);
}

static void
check_again(struct idem_bytes bytes, struct ProtobufCMessage *message,
            struct idem_arena *arena)
{
    struct idem_message_limits wide = {.max_size = 16 * MAX_SIZE};
    struct idem_fingerprint first, second;
    struct idem_bytes packed, twice;
    struct ProtobufCMessage *same;

    forget_signs_of_zero(message);
    IDEM_ASSERT(idem_message_pack(message, arena, &packed, NULL) == IDEM_OK);
    IDEM_ASSERT(idem_message_unpack(message->descriptor, packed, &wide, arena,
                                    &same, NULL) == IDEM_OK);
    IDEM_ASSERT(idem_message_pack(same, arena, &twice, NULL) == IDEM_OK);
    IDEM_ASSERT(idem_bytes_equal(packed, twice));
    idem_fingerprint_make(&first, &method, bytes, message);
    idem_fingerprint_make(&second, &method, packed, same);
    IDEM_ASSERT(idem_fingerprint_match(&first, &second));
}

static void
unpack_on_the_heap(const struct ProtobufCMessageDescriptor *type,
                   struct idem_bytes bytes, enum idem_status expected)
{
    struct ProtobufCMessage *message = NULL;
    enum idem_status status =
        message_unpack_heap(type, bytes, &limits, &message, NULL);

    IDEM_ASSERT(status == expected);
    if (status == IDEM_OK)
        protobuf_c_message_free_unpacked(message, NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ProtobufCMessageDescriptor *const types[] = {
        &shapes__v1__all__descriptor, &shapes__v1__inner__descriptor,
        &shapes__v1__less__descriptor};
    struct idem_bytes input = {data, size};
    const struct ProtobufCMessageDescriptor *type =
        types[fuzz_take_byte(&input) % 3];
    struct idem_arena *arena = new_arena();
    struct ProtobufCMessage *message;
    struct idem_error err = {0};
    enum idem_status status =
        idem_message_unpack(type, input, &limits, arena, &message, &err);

    IDEM_ASSERT(arena_size(arena) <=
                2 * MESSAGE_MEMORY_FACTOR * MAX_SIZE + MEMORY_MIN + ROUNDING);
    if (status == IDEM_OK)
        check_again(input, message, arena);
    else
        IDEM_ASSERT(strlen(err.message) > 0 &&
                    (status == IDEM_INVALID_ARGUMENT ||
                     status == IDEM_RESOURCE_EXHAUSTED));
    unpack_on_the_heap(type, input, status);
    arena_free(arena);
    return 0;
}
