#ifndef CANONICAL_H
#define CANONICAL_H

#include <idem/digest.h>
#include <idem/method.h>

/* The canonical form of a request, hashed as it is written: the same for every
 * encoding of the same logical request (semantics.md 3.4; cases B021, 46).
 * Version 1, all numbers little endian:
 *
 *   form     u32 version, message
 *   message  a field for each that is set and not ignored, by number;
 *            then one for each unknown field, by number, else in their order;
 *            u32 0
 *   known    u32 number, 'K', value           a single field
 *            u32 number, 'R', u64 count, values  a repeated one, packed or not
 *            u32 number, 'M', u64 count, entries  a map, sorted by the hash of
 *                                             the key; of two with one key the
 *                                             last
 *   unknown  u32 number, 'U', u8 wire type, bytes
 *   value    integers, enums and bools as 64 bits, sign-extended where signed;
 *            double as its 64 bits, float as its 32 in 64; text and bytes as
 *            bytes; a message
 *   bytes    u64 size, bytes
 *   entry    SHA-256 of the key, SHA-256 of the value, each as it would be
 *            written when it is set
 *
 * Set is what the field's presence says: what has none and equals its default
 * is not set, so an explicit default makes no difference (proto3); what has
 * presence (optional, a oneof, a message) differs when it is set to its
 * default. */
void canonical_hash(const struct idem_method *method,
                    const struct ProtobufCMessage *request,
                    uint8_t hash[IDEM_SHA256_SIZE]);

#endif
