#ifndef IDEM_AUTH_H
#define IDEM_AUTH_H

#include <idem/call.h>
#include <idem/interceptor.h>

/* Who calls a server: the bearer token in a call's metadata "authorization", by
 * a file of tokens, by a signature (JWT), or as the author's own function says.
 * docs/security.md shows each.
 *
 * Whom a token proves is the call's principal and its tenant, before the peer's
 * certificate; the metadata is taken out, so that no handler and no log sees
 * it. A call without a token is its certificate's, or nobody's. A token that
 * proves nothing is UNAUTHENTICATED, REFUSED, with one of the TOKEN_ reasons of
 * reason.h, also where nobody needs to be known. No message has a token in it.
 */

#define IDEM_TOKEN_MAX 4096   /* bytes of a token */
#define IDEM_IDENTITY_MAX 255 /* bytes of a name or role, of 0x21..0x7E */
#define IDEM_ROLES_MAX 64     /* of one identity */

/* Signed tokens, RFC 7519: RS256, ES256 (P-256) and HS256. */
struct idem_jwt_options {
    /* A JWK set (RFC 7517) with the signers' public keys, and secrets for
     * HS256. A key signs by the one algorithm that is its own. Required. */
    const char *keys_file;
    const char *issuer;      /* must be the token's "iss". Required */
    const char *audience;    /* must be among the token's "aud". Required */
    const char *roles_claim; /* a list of strings, or one with blanks between;
                              * NULL: "roles" */
    int64_t skew_ms; /* the signer's clock may differ; 0: 60,000; at most an
                      * hour. "exp" is required, "nbf" looked at */
};

/**
 * The author's own. Must not block; on many threads at once.
 *
 * @param token      of 0x21..0x7E; lives as long as the hook runs
 * @param principal  filled on OK, with memory of call->arena or longer-lived
 *
 * @retval IDEM_OK
 * @retval IDEM_NOT_FOUND  not one of its tokens; other statuses are what the
 *                         caller is told
 */
typedef enum idem_status idem_auth_fn(void *with, struct idem_call *call,
                                      struct idem_bytes token,
                                      struct idem_principal *principal,
                                      struct idem_error *err);

/* A file was read again; err NULL: its contents hold from now on, else what is
 * wrong with it, and what was before holds. On a thread of the library. */
typedef void idem_auth_reloaded_fn(void *with, const char *file,
                                   const struct idem_error *err);

/* All zero: nobody is asked for a token. Copied. Sources are asked in this
 * order. */
struct idem_auth_options {
    /* A line a token: an identity, "sha256:" and 64 hex digits of the token's
     * SHA-256, and maybe roles with commas between. Lines that begin with # are
     * none. NULL: none */
    const char *token_file;
    const struct idem_jwt_options *jwt; /* NULL: none */
    idem_auth_fn *check;                /* NULL: none */
    void *check_with;
    /* Who may call what, over what the .protos say (allow.h); NULL: as they say
     */
    const char *rules_file;
    idem_auth_reloaded_fn *reloaded; /* NULL: nobody is told */
    void *reloaded_with;
};

IDEM_BEGIN_DECLS

/**
 * The interceptor of band AUTH; a server of idem_server_open has it when its
 * options have auth. Its files are watched and read again (watch.h).
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT    an option or a file: named, with the rule
 * @retval IDEM_RESOURCE_EXHAUSTED  memory, descriptors, threads
 */
IDEM_API enum idem_status idem_auth_new(struct idem_interceptor **auth,
                                        const struct idem_auth_options *options,
                                        struct idem_error *err) IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
