#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>

#include "path.h"

/* What protoc read, with its cross references resolved: the files of one run,
 * their types, and the names that all of it gets in C. Built once, then read.
 */

struct file {
    file_proto *proto;
    const char *prefix; /* of our C names; "" in a file without package */
    bool prefix_stated; /* by the file option */
};

struct type {
    const struct file *file;
    message_proto *message;  /* NULL for an enum */
    enum_proto *enumeration; /* NULL for a message */
    struct path path;
    const char *full;   /* "payments.v1.ChargeRequest" */
    const char *alias;  /* "payments_charge_request" */
    const char *shout;  /* "PAYMENTS_CHARGE_REQUEST" */
    const char *theirs; /* "Payments__V1__ChargeRequest" */
    const char *lower;  /* "payments__v1__charge_request" */
    const char *upper;  /* "PAYMENTS__V1__CHARGE_REQUEST" */
};

struct model {
    struct pool *pool;
    struct file *files;
    size_t n_files;
    struct type *types; /* of all files; a file's stand together, outer first */
    size_t n_types;
    size_t room;
};

void model_init(struct model *model, struct pool *pool, file_proto **files,
                size_t n_files);

/* NULL when there is none of that name. */
const struct file *model_file(const struct model *model, const char *name);

/* By a reference as descriptors have it: ".payments.v1.ChargeRequest". */
const struct type *model_type(const struct model *model, const char *reference);

/* "payments.v1" and "Payments" give "payments.v1.Payments". */
const char *model_full_name(struct pool *pool, const char *scope,
                            const char *name);

/* Whether the file's field types, and its methods' when asked, need what that
 * import gives; public imports pass on what they import publicly. Imports that
 * give custom options only do not count. */
bool model_import_needed(const struct model *model, const file_proto *file,
                         const char *import, bool methods);

/* Whether the other files import this one for its custom options alone: no C is
 * made of it on their account. */
bool model_options_only(const struct model *model, const struct file *file);

/* An enum's constant in our C: COLOR_RED of enum Color is PAYMENTS_COLOR_RED.
 */
const char *model_enum_value(struct pool *pool, const struct type *type,
                             const char *value);

/* The proto3 optional field that protoc made this oneof for; NULL when the
 * author wrote the oneof. */
const field_proto *model_optional(const message_proto *message, size_t oneof);

#endif
