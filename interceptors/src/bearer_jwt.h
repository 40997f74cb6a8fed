#ifndef BEARER_JWT_H
#define BEARER_JWT_H

#include <idem/auth.h>

/* Signed tokens (RFC 7519), as idem_jwt_options says: whom one proves. */
struct bearer_jwt;

/* INVALID_ARGUMENT names the option or the file, and the rule. */
enum idem_status bearer_jwt_new(struct bearer_jwt **jwt,
                                const struct idem_jwt_options *options,
                                idem_auth_reloaded_fn *reloaded, void *with,
                                struct idem_error *err) IDEM_MUST_CHECK;

/* NULL is fine. */
void bearer_jwt_free(struct bearer_jwt *jwt);

/* Three parts of base64url's letters, with dots between. */
bool bearer_jwt_is(struct idem_bytes token);

/* UNAUTHENTICATED with a TOKEN_ reason: why it proves nothing. The principal's
 * memory is the arena's. later NULL: all is done here; else it receives whether
 * the signature would take some 300 us, and then nothing is said yet. */
enum idem_status bearer_jwt_check(struct bearer_jwt *jwt,
                                  struct idem_bytes token, int64_t now_ms,
                                  struct idem_arena *arena,
                                  struct idem_principal *principal, bool *later,
                                  struct idem_error *err) IDEM_MUST_CHECK;

#endif
