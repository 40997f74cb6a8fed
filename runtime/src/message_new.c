#include "message.h"

#include <protobuf-c/protobuf-c.h>

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
