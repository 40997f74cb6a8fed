#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>

#include "pool.h"

/* protobuf's wire, as far as custom options need it: they arrive as unknown
 * fields, and libprotobuf-c does not merge repeated ones as it should. */

/**
 * Join the payloads of every length-delimited field of that number: merging
 * messages is joining their bytes.
 *
 * @retval false  there is none; *joined is untouched
 */
bool wire_join(struct pool *pool, const ProtobufCBinaryData *bytes,
               unsigned number, ProtobufCBinaryData *joined);

/* The same over a message's unknown fields. */
bool wire_join_unknown(struct pool *pool, const ProtobufCMessage *message,
                       unsigned number, ProtobufCBinaryData *joined);

/* Take the unknown fields of that number out of a message. */
void wire_strip_unknown(ProtobufCMessage *message, unsigned number);

/* Add an unknown length-delimited field. */
void wire_add_unknown(struct pool *pool, ProtobufCMessage *message,
                      unsigned number, const void *bytes, size_t size);

#endif
