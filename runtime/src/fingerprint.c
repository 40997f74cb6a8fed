#include <idem/fingerprint.h>

#include "canonical.h"

#include <idem/digest.h>

#include <string.h>

static void
bind_to(const struct idem_method *method, uint8_t hash[IDEM_SHA256_SIZE])
{
    const struct idem_bytes parts[] = {idem_bytes_of("idem-method1"),
                                       idem_bytes_of(method->name),
                                       {hash, IDEM_SHA256_SIZE}};

    idem_sha256_of_parts(parts, 3, hash);
}

void
idem_fingerprint_of_bytes(struct idem_fingerprint *fingerprint,
                          const struct idem_method *method,
                          struct idem_bytes bytes)
{
    *fingerprint = (struct idem_fingerprint){.version = 0};
    idem_sha256_of(bytes, fingerprint->raw);
    if (method->shares_keys)
        bind_to(method, fingerprint->raw);
}

void
idem_fingerprint_add_canonical(struct idem_fingerprint *fingerprint,
                               const struct idem_method *method,
                               const struct ProtobufCMessage *request)
{
    canonical_hash(method, request, fingerprint->canonical);
    if (method->shares_keys)
        bind_to(method, fingerprint->canonical);
    fingerprint->version = IDEM_FINGERPRINT_VERSION;
}

void
idem_fingerprint_make(struct idem_fingerprint *fingerprint,
                      const struct idem_method *method, struct idem_bytes bytes,
                      const struct ProtobufCMessage *request)
{
    idem_fingerprint_of_bytes(fingerprint, method, bytes);
    idem_fingerprint_add_canonical(fingerprint, method, request);
}

static bool
is_equal(const uint8_t a[IDEM_SHA256_SIZE], const uint8_t b[IDEM_SHA256_SIZE])
{
    return memcmp(a, b, IDEM_SHA256_SIZE) == 0;
}

bool
idem_fingerprint_match(const struct idem_fingerprint *a,
                       const struct idem_fingerprint *b)
{
    if (is_equal(a->raw, b->raw))
        return true;
    return a->version == b->version && a->version != 0 &&
           is_equal(a->canonical, b->canonical);
}
