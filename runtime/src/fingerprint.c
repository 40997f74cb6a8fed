#include <idem/fingerprint.h>

#include "canonical.h"

#include <idem/digest.h>

void
idem_fingerprint_make(struct idem_fingerprint *fingerprint,
                      const struct idem_method *method, struct idem_bytes bytes,
                      const struct ProtobufCMessage *request)
{
    idem_sha256_of(bytes, fingerprint->raw);
    canonical_hash(method, request, fingerprint->canonical);
    fingerprint->version = IDEM_FINGERPRINT_VERSION;
}

bool
idem_fingerprint_match(const struct idem_fingerprint *a,
                       const struct idem_fingerprint *b)
{
    if (idem_digest_equal(a->raw, b->raw, sizeof(a->raw)))
        return true;
    return a->version == b->version &&
           idem_digest_equal(a->canonical, b->canonical, sizeof(a->canonical));
}
