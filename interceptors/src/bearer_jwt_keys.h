#ifndef BEARER_JWT_KEYS_H
#define BEARER_JWT_KEYS_H

#include "bearer_jwt_seen.h"
#include "bearer_jwt_text.h"
#include "kept_file.h"

/* A JWK set (RFC 7517): the keys in it that sign by an algorithm of ours. Keys
 * of other kinds or uses are left out; one that is broken, weak or private
 * makes the file a bad one. */

struct bearer_key {
    char *id; /* NULL: it has none */
    enum bearer_algorithm algorithm;
    uint8_t *material; /* a PEM public key; HS256: the secret */
    size_t size;
};

struct bearer_keys {
    struct bearer_key *at;
    unsigned n;
    struct bearer_seen *seen; /* signed by one of them */
};

extern const struct kept_file_ops bearer_keys_ops; /* meaning: keys */

#endif
