#ifndef BEARER_JWT_TEXT_H
#define BEARER_JWT_TEXT_H

#include <idem/arena.h>
#include <idem/status.h>

/* A JWT's text: its three parts, and what the JSON in them says. Strict: no
 * padding, no spare bits, no member twice. Nothing is believed here. */

enum bearer_algorithm {
    BEARER_RS256 = 1,
    BEARER_ES256 = 2,
    BEARER_HS256 = 3,
};

struct bearer_parts {
    struct idem_bytes whole;                     /* the token … */
    struct idem_bytes header, claims, signature; /* … and in it, encoded */
    struct idem_bytes signed_text;               /* header, dot and claims */
};

struct bearer_header {
    enum bearer_algorithm algorithm;
    struct idem_bytes id; /* of the key; data NULL: none is said */
};

#define BEARER_AUDIENCES_MAX 16

struct bearer_claims {
    struct idem_bytes issuer, subject; /* empty: not there */
    struct idem_bytes *audiences;
    unsigned n_audiences;
    bool has_expiry, has_begin;
    double expiry_s, begin_s; /* since 1970 */
    struct idem_bytes *roles;
    unsigned n_roles;
};

/* False: not three parts of base64url's letters, none empty. */
bool bearer_split(struct idem_bytes token, struct bearer_parts *parts);

/* base64url; false: not that, or out of memory. */
bool bearer_decode(struct idem_bytes *bytes, struct idem_bytes text,
                   struct idem_arena *arena);

/* UNAUTHENTICATED TOKEN_MALFORMED, or TOKEN_ALGORITHM for one that is not ours:
 * "none" is not. */
enum idem_status bearer_header_read(struct bearer_header *header,
                                    struct idem_bytes part,
                                    struct idem_arena *arena,
                                    struct idem_error *err) IDEM_MUST_CHECK;

/* UNAUTHENTICATED TOKEN_MALFORMED: a claim that is not of its type. */
enum idem_status bearer_claims_read(struct bearer_claims *claims,
                                    struct idem_bytes part,
                                    const char *roles_claim,
                                    struct idem_arena *arena,
                                    struct idem_error *err) IDEM_MUST_CHECK;

#endif
