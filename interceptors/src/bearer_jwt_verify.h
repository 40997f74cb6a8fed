#ifndef BEARER_JWT_VERIFY_H
#define BEARER_JWT_VERIFY_H

#include "bearer_jwt_keys.h"

/* The key has signed the token, by the key's own algorithm, which the caller
 * has found to be the token's. */
bool bearer_verify(const struct bearer_key *key,
                   const struct bearer_parts *parts);

#endif
