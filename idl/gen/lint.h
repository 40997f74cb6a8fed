#ifndef LINT_H
#define LINT_H

#include "complaint.h"
#include "service.h"

/* What cannot be compiled, or cannot hold. Every message names the thing and
 * the rule; docs/language.md has them all. */

/* What protoc-c would crash on or turn into C that does not compile. */
void lint_shape(struct complaints *complaints, const struct file *file);

/* Policies that contradict each other, the request or the rules. */
void lint_policies(struct complaints *complaints, const struct model *model,
                   const struct file *file);

/* What a stream can have of a policy, if the method is one. */
void lint_stream(struct complaints *complaints, const struct method *method);

/* A method's key: that its fields exist and always have one value. */
void lint_key(struct complaints *complaints, const struct model *model,
              const struct method *method);

/* Who may call: that somebody may, and that it is said once. */
void lint_service_allow(struct complaints *complaints,
                        const struct service *service);
void lint_method_allow(struct complaints *complaints,
                       const struct method *method);

/* A method's retry policy: its numbers and codes. */
void lint_retry(struct complaints *complaints, const struct method *method);

/* How much of a method the server lets in. */
void lint_limit(struct complaints *complaints, const struct method *method);

/* Two things that would get one name in C. */
void lint_names(struct complaints *complaints, const struct model *model,
                const struct file *file);

#endif
