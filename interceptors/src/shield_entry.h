#ifndef SHIELD_ENTRY_H
#define SHIELD_ENTRY_H

#include <idem/digest.h>
#include <idem/shield.h>

#define SHIELD_TAG_SIZE 16

/* One recorded answer as it lies in Redis (semantics.md 4.5):
 *
 *   u8 version | u32 id of the secret | epoch (SHA-256 of its name) | digest |
 * raw and canonical fingerprint, u32 version | u8 status | i64 first_at_ms |
 * u32 executions | message, reason, reply, trailers, each after a u32 of its
 * size | HMAC-SHA256, 16 bytes of it
 *
 * Integers are little endian. Nothing of it is believed before the tag of the
 * whole is right: Redis may say anything. */
struct shield_entry {
    uint8_t epoch[IDEM_SHA256_SIZE];
    uint8_t digest[IDEM_SHA256_SIZE];
    struct idem_fingerprint fingerprint;
    struct idem_answer answer; /* views */
};

/* The first signs; all are believed. Their bytes are owned by who made them. */
struct shield_secrets {
    struct idem_redis_secret list[IDEM_REDIS_SECRETS_MAX];
    size_t count; /* at least 1 */
};

enum shield_read {
    SHIELD_READ_GOOD,
    SHIELD_READ_BROKEN,  /* not an entry that one of the secrets has signed */
    SHIELD_READ_FOREIGN, /* by a secret whose id none of ours has, it says */
};

/* Bytes that the entry takes. */
size_t shield_entry_size(const struct shield_entry *entry);

/* Write it with its tag; bytes has room for shield_entry_size. */
void shield_entry_write(const struct shield_entry *entry,
                        const struct shield_secrets *secrets, uint8_t *bytes);

/* The entry's views are into bytes. */
enum shield_read shield_entry_read(struct shield_entry *entry,
                                   const struct shield_secrets *secrets,
                                   struct idem_bytes bytes) IDEM_MUST_CHECK;

#endif
