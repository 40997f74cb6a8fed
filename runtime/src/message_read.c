#include "message.h"

#include <idem/channel.h>

enum idem_status
idem_channel_read_reply(const struct idem_method *method,
                        struct idem_bytes bytes,
                        struct ProtobufCMessage **reply, struct idem_error *err)
{
    return message_unpack_heap(method->reply, bytes, NULL, reply, err);
}
