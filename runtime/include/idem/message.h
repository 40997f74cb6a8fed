#ifndef IDEM_MESSAGE_H
#define IDEM_MESSAGE_H

#include <idem/arena.h>
#include <idem/method.h>

/* protobuf messages at the border: checked before they are unpacked. */

IDEM_BEGIN_DECLS

/* A message without fields: the request or reply of a part of a stream that has
 * none (<idem/method.h>, each and end). */
IDEM_API extern const struct ProtobufCMessageDescriptor idem_no_message;

struct idem_message_limits {
    size_t max_size;    /* bytes; 0 means 4 MiB */
    unsigned max_depth; /* messages inside messages; 0 means 100 */
    size_t max_unknown; /* bytes of unknown fields; 0 means 64 KiB */
};

/**
 * Check and unpack into the arena.
 *
 * Depth, size, UTF-8 of strings, NUL in strings and the amount of unknown
 * fields are checked on the way: libprotobuf-c 1.4.1 recurses without limit and
 * cuts a string at a NUL (cases B026, B086, B095). The message takes at most 16
 * times max_size of memory, and 64 KiB at least (case B089). Two copies of a
 * sub-message are merged as protobuf has it (case B093).
 *
 * @param limits  NULL is all defaults
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT    names the message, the field and the rule;
 *                                  also over max_depth
 * @retval IDEM_RESOURCE_EXHAUSTED  another limit, with both numbers
 */
IDEM_API enum idem_status idem_message_unpack(
    const struct ProtobufCMessageDescriptor *type, struct idem_bytes bytes,
    const struct idem_message_limits *limits, struct idem_arena *arena,
    struct ProtobufCMessage **message, struct idem_error *err) IDEM_MUST_CHECK;

/**
 * Check and pack into the arena; the view's data is not NULL. A NULL entry in a
 * repeated field, a oneof whose case is set to NULL, a required string or
 * message that is NULL, a string that is not UTF-8 and messages inside messages
 * over 100 are INTERNAL and name the field (case B088).
 */
IDEM_API enum idem_status
idem_message_pack(const struct ProtobufCMessage *message,
                  struct idem_arena *arena, struct idem_bytes *bytes,
                  struct idem_error *err) IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
