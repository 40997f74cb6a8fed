#ifndef SHIELD_ENTRY_H
#define SHIELD_ENTRY_H

#include <idem/digest.h>
#include <idem/store.h>

#define SHIELD_TAG_SIZE 16

/* One recorded answer as it lies in Redis (semantics.md 4.5):
 *
 *   u8 version | epoch (SHA-256 of its name) | digest | raw and canonical
 *   fingerprint, u32 version | u8 status | i64 first_at_ms | message, reason,
 *   reply, trailers, each after a u32 of its size | HMAC-SHA256, 16 bytes of it
 *
 * Integers are little endian. Nothing of it is believed before the tag of the
 * whole is right: Redis may say anything. */
struct shield_entry {
    uint8_t epoch[IDEM_SHA256_SIZE];
    uint8_t digest[IDEM_SHA256_SIZE];
    struct idem_fingerprint fingerprint;
    struct idem_answer answer; /* views */
};

/* Bytes that the entry takes. */
size_t shield_entry_size(const struct shield_entry *entry);

/* Write it with its tag; bytes has room for shield_entry_size. */
void shield_entry_write(const struct shield_entry *entry,
                        struct idem_bytes secret, uint8_t *bytes);

/* False: not an entry that this secret has signed. The entry's views are into
 * bytes. */
bool shield_entry_read(struct shield_entry *entry, struct idem_bytes secret,
                       struct idem_bytes bytes) IDEM_MUST_CHECK;

#endif
