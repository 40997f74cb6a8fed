#include "bearer_jwt_verify.h"

#include "word_lines.h"

#include <idem/digest.h>

#include <jwt.h>

#include <stdlib.h>
#include <string.h>

/* libjwt 1.10 compares an HMAC with strcmp (CVE-2024-25189), whose time says
 * how much of a forgery is right; here it takes as long for each. */
static bool
verify_secret(const struct bearer_key *key, const struct bearer_parts *parts,
              struct idem_bytes shown)
{
    uint8_t tag[IDEM_SHA256_SIZE];
    bool same;

    idem_hmac_sha256((struct idem_bytes){key->material, key->size},
                     parts->signed_text, tag);
    same = shown.size == sizeof tag &&
           idem_digest_equal(shown.data, tag, sizeof tag);
    explicit_bzero(tag, sizeof tag);
    return same;
}

static jwt_alg_t
algorithm_of(const struct bearer_key *key)
{
    return key->algorithm == BEARER_RS256 ? JWT_ALG_RS256 : JWT_ALG_ES256;
}

/* It reads the token itself: that it read the same algorithm is made sure of.
 */
static bool
verify_pair(const struct bearer_key *key, const struct bearer_parts *parts)
{
    char *text = word_copy(parts->whole);
    jwt_t *jwt = NULL;
    bool good;

    good = jwt_decode(&jwt, text, key->material, (int)key->size) == 0 &&
           jwt_get_alg(jwt) == algorithm_of(key);
    jwt_free(jwt);
    explicit_bzero(text, parts->whole.size);
    free(text);
    return good;
}

/* libjwt lets spare bits and more pass: one signature would have many texts. */
static bool
is_strict(struct idem_bytes *shown, const struct bearer_parts *parts,
          struct idem_arena *arena)
{
    return parts->signature.size > 0 &&
           bearer_decode(shown, parts->signature, arena);
}

bool
bearer_verify(const struct bearer_key *key, const struct bearer_parts *parts)
{
    struct idem_arena *arena = idem_arena_new();
    struct idem_bytes shown;
    bool good;

    IDEM_ASSERT(arena);
    good = is_strict(&shown, parts, arena) &&
           (key->algorithm == BEARER_HS256 ? verify_secret(key, parts, shown)
                                           : verify_pair(key, parts));
    idem_arena_free(arena);
    return good;
}
