#ifndef BEARER_JWT_SEEN_H
#define BEARER_JWT_SEEN_H

#include <idem/digest.h>

/* Tokens whose signature was found good, by their SHA-256: a client sends the
 * same one with each call. Belongs to the key set that found it, and goes with
 * it; what the token claims is looked at each time. A new one takes the place
 * of an old one. Any thread. */
struct bearer_seen;

struct bearer_seen *bearer_seen_new(void);
void bearer_seen_free(struct bearer_seen *seen);

bool bearer_seen_has(struct bearer_seen *seen,
                     const uint8_t hash[IDEM_SHA256_SIZE]);
void bearer_seen_add(struct bearer_seen *seen,
                     const uint8_t hash[IDEM_SHA256_SIZE]);

#endif
