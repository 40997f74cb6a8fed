#include "message.h"

#include <protobuf-c/protobuf-c.h>

static void
init_no_message(ProtobufCMessage *message)
{
    *message = (ProtobufCMessage){.descriptor = &idem_no_message};
}

const ProtobufCMessageDescriptor idem_no_message = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "idem.v1.NoMessage",
    .short_name = "NoMessage",
    .c_name = "NoMessage",
    .package_name = "idem.v1",
    .sizeof_message = sizeof(ProtobufCMessage),
    .message_init = init_no_message,
};

struct ProtobufCMessage *
message_new(const struct ProtobufCMessageDescriptor *type,
            struct idem_arena *arena)
{
    struct ProtobufCMessage *message =
        idem_arena_alloc(arena, type->sizeof_message);

    if (message)
        protobuf_c_message_init(type, message);
    return message;
}
