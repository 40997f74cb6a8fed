#ifndef IDEM_ALLOW_H
#define IDEM_ALLOW_H

#include <idem/auth.h>

/* May who calls do so? The rules are the .proto's (options.proto, Allow), or
 * those of a file over them, a line a rule; the first that names the method
 * holds, and a method's own name goes before its service's:
 *
 *    payments.v1.Payments/Charge  svc:till role:clerk
 *    payments.v1.Payments         known
 *    grpc.health.v1.Health        anyone
 *
 * Words are "anyone", "known", "nobody", "role:" and a role, or an identity,
 * maybe with a * at its end; one of them suffices. Lines that begin with # are
 * none.
 *
 * Who is turned away is told UNAUTHENTICATED TOKEN_MISSING when he is not
 * known, else PERMISSION_DENIED NOT_ALLOWED; REFUSED: no record is touched. */

struct idem_allow_options {
    bool known; /* where no rule is: whoever is known; false: anyone */
    const char *rules_file;          /* NULL: none. Watched and read again */
    idem_auth_reloaded_fn *reloaded; /* NULL: nobody is told */
    void *reloaded_with;
};

IDEM_BEGIN_DECLS

/**
 * The interceptor of band ALLOW; a server of idem_server_open has it, with
 * known when its options have auth.
 *
 * @param options  NULL is all defaults; copied
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT    the file: its line and the rule
 * @retval IDEM_RESOURCE_EXHAUSTED  memory, descriptors, threads
 */
IDEM_API enum idem_status
idem_allow_new(struct idem_interceptor **allow,
               const struct idem_allow_options *options, struct idem_error *err)
    IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
