#ifndef IDEM_DIGEST_H
#define IDEM_DIGEST_H

#include <idem/base.h>

#define IDEM_SHA256_SIZE 32

IDEM_BEGIN_DECLS

/* Hashes by OpenSSL's libcrypto, which no other file includes. */

struct idem_sha256;

/* A hash in progress, of one thread from here to its end. Ends the process when
 * memory is out. */
IDEM_API struct idem_sha256 *idem_sha256_new(void);
IDEM_API void idem_sha256_add(struct idem_sha256 *sha, const void *bytes,
                              size_t size);

/* Length-prefixed (u64 little endian), so that parts cannot run into one
 * another. */
IDEM_API void idem_sha256_add_part(struct idem_sha256 *sha,
                                   struct idem_bytes part);

/* Writes the hash and frees. */
IDEM_API void idem_sha256_finish(struct idem_sha256 *sha,
                                 uint8_t hash[IDEM_SHA256_SIZE]);

IDEM_API void idem_sha256_of(struct idem_bytes bytes,
                             uint8_t hash[IDEM_SHA256_SIZE]);

/* As if each were added by idem_sha256_add_part, in one go. */
IDEM_API void idem_sha256_of_parts(const struct idem_bytes *parts, size_t n,
                                   uint8_t hash[IDEM_SHA256_SIZE]);

IDEM_API void idem_hmac_sha256(struct idem_bytes secret,
                               struct idem_bytes bytes,
                               uint8_t tag[IDEM_SHA256_SIZE]);

/* In constant time. */
IDEM_API bool idem_digest_equal(const void *a, const void *b, size_t size);

/* Castagnoli. */
IDEM_API uint32_t idem_crc32c(struct idem_bytes bytes);

IDEM_END_DECLS

#endif
