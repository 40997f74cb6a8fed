#ifndef MESSAGE_H
#define MESSAGE_H

#include <idem/message.h>

/* Memory of an unpacked message, at most: this many times max_size, and at
 * least 64 KiB. Two bytes on the wire may ask for a whole struct (case B089).
 */
#define MESSAGE_MEMORY_FACTOR 16

/* As idem_message_unpack, of bytes that live as long as the arena and stay as
 * they are: the message's fields of bytes point into them. */
enum idem_status message_unpack_in_place(
    const struct ProtobufCMessageDescriptor *type, struct idem_bytes bytes,
    const struct idem_message_limits *limits, struct idem_arena *arena,
    struct ProtobufCMessage **message, struct idem_error *err) IDEM_MUST_CHECK;

/* As idem_message_unpack, on the heap: the caller frees it with the generated
 * free function (protobuf_c_message_free_unpacked). */
enum idem_status message_unpack_heap(
    const struct ProtobufCMessageDescriptor *type, struct idem_bytes bytes,
    const struct idem_message_limits *limits, struct ProtobufCMessage **message,
    struct idem_error *err) IDEM_MUST_CHECK;

/* An empty message of this type. NULL: memory is out. */
struct ProtobufCMessage *
message_new(const struct ProtobufCMessageDescriptor *type,
            struct idem_arena *arena) IDEM_MUST_CHECK;

#endif
