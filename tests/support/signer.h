#ifndef SIGNER_H
#define SIGNER_H

#include <stddef.h>

/* Signed tokens for tests, good ones and others: a key pair or a secret, made
 * on the spot, its JWK and what it signs. Texts are the caller's to free. */
struct signer;

struct signer *signer_rsa(unsigned bits);
struct signer *signer_p256(void);
struct signer *signer_secret(const void *secret, size_t size);
void signer_free(struct signer *signer);

/* {"kty":…}: the public key, or the secret, with that kid; NULL: without. more:
 * members to add, ",\"use\":\"sig\""; NULL: none. */
char *signer_jwk(const struct signer *signer, const char *kid,
                 const char *more);

/* The public key as PEM: what a forger takes for an HMAC's secret. */
char *signer_pem(const struct signer *signer);

/* Header and claims, each JSON, signed by the signer's own algorithm whatever
 * the header says. */
char *signer_sign(const struct signer *signer, const char *header,
                  const char *claims);

/* The same without a signature: what stands before it is "". */
char *signer_unsigned(const char *header, const char *claims);

#endif
