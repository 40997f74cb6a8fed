#ifndef SERVICE_H
#define SERVICE_H

#include "policy.h"

/* A service and its methods with the names that they get in C. */

/* Of all methods whose key source is SESSION; no alias can have a space. The
 * same as IDEM_SESSION_SCOPE of <idem/key.h>. */
#define SERVICE_SESSION_SCOPE "all sessions"

struct service {
    const struct file *file;
    const service_proto *proto;
    struct path path;
    const char *full;          /* "payments.v1.Payments" */
    const char *name;          /* "payments": what its C names begin with */
    const allow_policy *allow; /* of the methods that state none; or NULL */
    struct method *methods;
    size_t n_methods;
};

struct method {
    const struct service *service;
    const method_proto *proto;
    struct path path;
    const char *full;            /* "payments.v1.Payments/Charge" */
    const char *scope;           /* of its records */
    const char *slot;            /* "charge" */
    const char *statements_slot; /* STATEMENT has two instead: */
    const char *reply_slot;      /* "charge_statements", "charge_reply" */
    const char *snake;           /* "charge", also where that is a word of C */
    const char *name;            /* "payments_charge" */
    const char *shout;           /* "PAYMENTS_CHARGE" */
    const struct type *input;
    const struct type *output;
    struct policy policy;
};

/* The services of a file that have methods; *n of them. One without methods
 * gives no code. */
struct service *services_of(const struct model *model, const struct file *file,
                            size_t *n);

/* Whether the method has a slot for a probe beside its handler's, and one for a
 * rebuild. */
bool service_probes(const struct method *method);
bool service_rebuilds(const struct method *method);

/* Whether other methods have its scope, or may. */
bool service_shares_keys(const struct method *method);

/* Which side sends many messages. */
bool service_streams(const struct method *method);
bool service_client_streams(const struct method *method);
bool service_server_streams(const struct method *method);

/* Who may call it, by its own words or its service's; NULL: neither says. */
const allow_policy *service_allows(const struct method *method);

/* A server stream with a mode: it has an effect, and then messages. */
bool service_resumes(const struct method *method);

/* A client stream or a bidirectional one with a mode: each message of the
 * client's is a call of its own. */
bool service_numbers(const struct method *method);

/* A path of the request's fields, "order.id", as the fields from the request
 * inward; fields has room for service_key_depth(path).
 *
 * @return how many
 *
 * @retval 0  a part does not exist, or goes into what is no message
 */
unsigned service_key_path(const struct model *model, const struct type *request,
                          const char *path, const field_proto **fields);

/* As many fields as the path can have. */
unsigned service_key_depth(const char *path);

#endif
