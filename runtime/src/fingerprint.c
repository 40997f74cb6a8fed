#include <idem/fingerprint.h>

#include "canonical.h"

#include <idem/digest.h>

static void
bind_to(const struct idem_method *method, uint8_t hash[IDEM_SHA256_SIZE])
{
    struct idem_sha256 *sha = idem_sha256_new();

    idem_sha256_add_part(sha, idem_bytes_of("idem-method1"));
    idem_sha256_add_part(sha, idem_bytes_of(method->name));
    idem_sha256_add_part(sha, (struct idem_bytes){hash, IDEM_SHA256_SIZE});
    idem_sha256_finish(sha, hash);
}

void
idem_fingerprint_make(struct idem_fingerprint *fingerprint,
                      const struct idem_method *method, struct idem_bytes bytes,
                      const struct ProtobufCMessage *request)
{
    idem_sha256_of(bytes, fingerprint->raw);
    canonical_hash(method, request, fingerprint->canonical);
    if (method->shares_keys) {
        bind_to(method, fingerprint->raw);
        bind_to(method, fingerprint->canonical);
    }
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
