#include "bearer_jwt.h"

#include "bearer_jwt_keys.h"
#include "bearer_jwt_text.h"
#include "bearer_jwt_verify.h"
#include "word_lines.h"

#include <idem/reason.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SKEW_MS 60000
#define SKEW_MAX_MS (60 * 60 * INT64_C(1000))
#define ROLES_CLAIM "roles"

struct bearer_jwt {
    struct kept_file *keys;
    char *issuer, *audience, *roles_claim;
    int64_t skew_ms;
};

/* --- Its life --- */

static enum idem_status
check_options(const struct idem_jwt_options *options, struct idem_error *err)
{
    if (!options->keys_file || !options->issuer || !options->audience)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "jwt needs keys_file, issuer and audience");
    if (options->skew_ms < 0 || options->skew_ms > SKEW_MAX_MS)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "jwt: skew_ms %" PRId64 " is not of 0 to %" PRId64,
                         options->skew_ms, SKEW_MAX_MS);
    return IDEM_OK;
}

enum idem_status
bearer_jwt_new(struct bearer_jwt **out, const struct idem_jwt_options *options,
               idem_auth_reloaded_fn *reloaded, void *with,
               struct idem_error *err)
{
    enum idem_status status = check_options(options, err);
    struct bearer_jwt *jwt;

    if (status != IDEM_OK)
        return status;
    jwt = calloc(1, sizeof *jwt);
    if (!jwt)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    jwt->issuer = strdup(options->issuer);
    jwt->audience = strdup(options->audience);
    jwt->roles_claim =
        strdup(options->roles_claim ? options->roles_claim : ROLES_CLAIM);
    jwt->skew_ms = options->skew_ms ? options->skew_ms : SKEW_MS;
    if (!jwt->issuer || !jwt->audience || !jwt->roles_claim)
        status = idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    else
        status = kept_file_new(&jwt->keys, options->keys_file, &bearer_keys_ops,
                               reloaded, with, err);
    if (status != IDEM_OK) {
        bearer_jwt_free(jwt);
        return status;
    }
    *out = jwt;
    return IDEM_OK;
}

void
bearer_jwt_free(struct bearer_jwt *jwt)
{
    if (!jwt)
        return;
    kept_file_free(jwt->keys);
    free(jwt->issuer);
    free(jwt->audience);
    free(jwt->roles_claim);
    free(jwt);
}

bool
bearer_jwt_is(struct idem_bytes token)
{
    struct bearer_parts parts;

    return bearer_split(token, &parts);
}

/* --- The signature --- */

/* By its id; a token without one may mean the only key of its algorithm. */
static const struct bearer_key *
key_of(const struct bearer_keys *keys, const struct bearer_header *header)
{
    const struct bearer_key *found = NULL;

    for (unsigned i = 0; i < keys->n; i++) {
        const struct bearer_key *key = &keys->at[i];

        if (header->id.data && key->id &&
            idem_bytes_equal(header->id, idem_bytes_of(key->id)))
            return key;
        if (header->id.data || key->algorithm != header->algorithm)
            continue;
        if (found)
            return NULL;
        found = key;
    }
    return found;
}

/* To verify a pair's signature takes some 300 us, to have seen it 1. */
static bool
is_signed(const struct bearer_keys *keys, const struct bearer_key *key,
          const struct bearer_parts *parts, bool *later)
{
    uint8_t hash[IDEM_SHA256_SIZE];

    if (key->algorithm == BEARER_HS256)
        return bearer_verify(key, parts);
    idem_sha256_of(parts->whole, hash);
    if (bearer_seen_has(keys->seen, hash))
        return true;
    if (later) {
        *later = true;
        return false;
    }
    if (!bearer_verify(key, parts))
        return false;
    bearer_seen_add(keys->seen, hash);
    return true;
}

static enum idem_status
check_signature(struct bearer_jwt *jwt, const struct bearer_parts *parts,
                const struct bearer_header *header, bool *later,
                struct idem_error *err)
{
    struct kept *kept = kept_file_hold(jwt->keys);
    const struct bearer_key *key = key_of(kept->meaning, header);
    enum idem_status status = IDEM_OK;

    if (!key)
        status = idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_KEY,
                                  "the token is signed by a key that is not "
                                  "known");
    else if (key->algorithm != header->algorithm)
        status =
            idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_ALGORITHM,
                             "the token's algorithm is not its key's");
    else if (!is_signed(kept->meaning, key, parts, later))
        status =
            idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_SIGNATURE,
                             "the token's signature is wrong");
    kept_release(kept);
    return status;
}

/* --- The claims, when they are the signer's --- */

static enum idem_status
check_time(const struct bearer_jwt *jwt, const struct bearer_claims *claims,
           int64_t now_ms, struct idem_error *err)
{
    double now = (double)now_ms, skew = (double)jwt->skew_ms;

    if (!claims->has_expiry)
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_EXPIRED,
                                "the token has no \"exp\"");
    if (now >= claims->expiry_s * 1000 + skew)
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_EXPIRED,
                                "the token has expired");
    if (claims->has_begin && now + skew < claims->begin_s * 1000)
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_EARLY,
                                "the token is not valid yet");
    return IDEM_OK;
}

static bool
is_among(struct idem_bytes name, const struct idem_bytes *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (idem_bytes_equal(names[i], name))
            return true;
    return false;
}

static enum idem_status
check_parties(const struct bearer_jwt *jwt, const struct bearer_claims *claims,
              struct idem_error *err)
{
    if (!idem_bytes_equal(claims->issuer, idem_bytes_of(jwt->issuer)))
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_ISSUER,
                                "the token's issuer is not %s", jwt->issuer);
    if (!is_among(idem_bytes_of(jwt->audience), claims->audiences,
                  claims->n_audiences))
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_AUDIENCE,
                                "the token is not for %s", jwt->audience);
    if (!word_is_name(claims->subject))
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MALFORMED,
                                "the token's \"sub\" is no name of 1 to %d "
                                "bytes of printable ASCII",
                                IDEM_IDENTITY_MAX);
    return IDEM_OK;
}

enum idem_status
bearer_jwt_check(struct bearer_jwt *jwt, struct idem_bytes token,
                 int64_t now_ms, struct idem_arena *arena,
                 struct idem_principal *principal, bool *later,
                 struct idem_error *err)
{
    struct bearer_parts parts;
    struct bearer_header header;
    struct bearer_claims claims;
    enum idem_status status = IDEM_OK;

    if (later)
        *later = false;
    if (!bearer_split(token, &parts))
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MALFORMED,
                                "the token has not three parts of base64url");
    status = bearer_header_read(&header, parts.header, arena, err);
    if (status == IDEM_OK)
        status = check_signature(jwt, &parts, &header, later, err);
    if (status == IDEM_OK)
        status = bearer_claims_read(&claims, parts.claims, jwt->roles_claim,
                                    arena, err);
    if (status == IDEM_OK)
        status = check_time(jwt, &claims, now_ms, err);
    if (status == IDEM_OK)
        status = check_parties(jwt, &claims, err);
    if (status != IDEM_OK)
        return status;
    *principal =
        (struct idem_principal){claims.subject, claims.roles, claims.n_roles};
    return IDEM_OK;
}
