#ifndef IDEM_FINGERPRINT_H
#define IDEM_FINGERPRINT_H

#include <idem/method.h>

#define IDEM_FINGERPRINT_VERSION 1 /* of the canonical form */

IDEM_BEGIN_DECLS

/* What a request is, twice (semantics.md 3.4): the same logical request has
 * the same raw hash when the same stub repeats it, and the same canonical hash
 * when another runtime or version wrote it. */
struct idem_fingerprint {
    uint8_t raw[32];       /* SHA-256 of the bytes as received */
    uint8_t canonical[32]; /* SHA-256 of the canonical form */
    unsigned version;      /* of the canonical form; 0: there is none yet */
};

/* Of a method that shares its keys both hashes are of its name, too: what was
 * asked of one is not what is asked of another, though the bytes are the same.
 *
 * Canonical: fields by number, map entries sorted, defaults left out, packed
 * and unpacked alike, the method's ignored fields left out, unknown fields by
 * number. */
IDEM_API void idem_fingerprint_make(struct idem_fingerprint *fingerprint,
                                    const struct idem_method *method,
                                    struct idem_bytes bytes,
                                    const struct ProtobufCMessage *request);

/* The same in two steps: raw and version 0, then the canonical hash, which
 * costs more and decides only where the raw ones differ. */
IDEM_API void idem_fingerprint_of_bytes(struct idem_fingerprint *fingerprint,
                                        const struct idem_method *method,
                                        struct idem_bytes bytes);
IDEM_API void
idem_fingerprint_add_canonical(struct idem_fingerprint *fingerprint,
                               const struct idem_method *method,
                               const struct ProtobufCMessage *request);

/* Either hash is equal, the canonical one only in the same version and where
 * both have one. Not in constant time: hashes of requests are no secret. */
IDEM_API bool idem_fingerprint_match(const struct idem_fingerprint *a,
                                     const struct idem_fingerprint *b);

IDEM_END_DECLS

#endif
