#ifndef ALLOW_RULES_H
#define ALLOW_RULES_H

#include "kept_file.h"

#include <idem/method.h>

/* The rules of a file (allow.h). "nobody" is a rule with nothing in it. */

struct allow_rule {
    char *name; /* of a method or a service */
    struct idem_allow allow;
};

struct allow_rules {
    struct allow_rule *at; /* in the order of the file */
    unsigned n;
};

extern const struct kept_file_ops allow_rules_ops; /* meaning: rules */

/* The rule for "package.Service/Method": its own, else its service's; NULL:
 * none. */
const struct idem_allow *allow_rules_find(const struct allow_rules *rules,
                                          const char *method);

/* One of the rule's words lets him in; NULL: nobody is known. */
bool allow_lets_in(const struct idem_allow *allow,
                   const struct idem_principal *principal);

#endif
