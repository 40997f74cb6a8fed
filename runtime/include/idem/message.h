#ifndef IDEM_MESSAGE_H
#define IDEM_MESSAGE_H

#include <idem/arena.h>
#include <idem/method.h>

/* protobuf messages at the border: checked before they are unpacked. */

IDEM_BEGIN_DECLS

struct idem_message_limits {
    size_t max_size;    /* bytes; 0 means 4 MiB */
    unsigned max_depth; /* messages inside messages; 0 means 100 */
    size_t max_unknown; /* bytes of unknown fields; 0 means 64 KiB */
};

/**
 * Check and unpack into the arena.
 *
 * Depth, size, UTF-8 of strings, NUL in strings and the amount of unknown
 * fields are checked on the bytes first: libprotobuf-c 1.4.1 recurses without
 * limit and cuts a string at a NUL (cases B026, B086, B095).
 *
 * @param limits  NULL is all defaults
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT    names the message, the field and the rule
 * @retval IDEM_RESOURCE_EXHAUSTED  a limit, with both numbers
 */
IDEM_API enum idem_status idem_message_unpack(
    const struct ProtobufCMessageDescriptor *type, struct idem_bytes bytes,
    const struct idem_message_limits *limits, struct idem_arena *arena,
    struct ProtobufCMessage **message, struct idem_error *err) IDEM_MUST_CHECK;

/**
 * Check and pack into the arena. A NULL entry in a repeated field or a oneof
 * whose case is set to NULL is INTERNAL and names the field (case B088).
 */
IDEM_API enum idem_status
idem_message_pack(const struct ProtobufCMessage *message,
                  struct idem_arena *arena, struct idem_bytes *bytes,
                  struct idem_error *err) IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
