#ifndef BEARER_JWT_PEM_H
#define BEARER_JWT_PEM_H

#include <idem/base.h>

/* A public key's numbers as PEM, which libjwt takes; by OpenSSL's libcrypto. */

/* NULL: *pem is malloc'ed, with a NUL behind its size bytes. Else what is wrong
 * with the key: an RSA modulus under 2048 or over 8192 bits, an exponent that
 * is even or 1, a point that is not on the curve. */
const char *bearer_pem_of_rsa(struct idem_bytes n, struct idem_bytes e,
                              char **pem, size_t *size);
const char *bearer_pem_of_p256(struct idem_bytes x, struct idem_bytes y,
                               char **pem, size_t *size);

#endif
