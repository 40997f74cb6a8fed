#include "lint.h"

#include <string.h>

#define OPTION_KEY 2
#define KEY_SOURCE 1
#define KEY_FIELDS 2
#define KEY_PRESENCE 3

static void
say(struct complaints *complaints, const struct method *method, int number,
    const char *words)
{
    struct path path = path_option(&method->path, METHOD_OPTIONS);

    path = path_option(&path, OPTION_NUMBER);
    path = path_option(&path, OPTION_KEY);
    path = path_option(&path, number);
    complain(complaints, method->service->file->proto, &path, "method %s: %s",
             method->proto->name, words);
}

/* Why this field of a path has no place in a key; NULL when it has. */
static const char *
fault_of(const field_proto *field, bool last)
{
    if (field->label == FIELD_LABEL(REPEATED))
        return "is repeated: a key has one value";
    if (field->proto3_optional)
        return "is optional: a key must always be there";
    if (field->has_oneof_index)
        return "is in a oneof: a key must always be there";
    if (!last)
        return field->type == FIELD_TYPE(MESSAGE) ? NULL : "has no fields";
    if (field->type == FIELD_TYPE(MESSAGE) || field->type == FIELD_TYPE(GROUP))
        return "is a message: name a scalar in it";
    if (field->type == FIELD_TYPE(FLOAT) || field->type == FIELD_TYPE(DOUBLE))
        return "is a floating-point number, which is no key";
    return NULL;
}

static void
check_path(struct complaints *complaints, const struct model *model,
           const struct method *method, const char *path)
{
    struct pool *pool = model->pool;
    unsigned depth;
    const field_proto **fields =
        pool_alloc(pool, service_key_depth(path) * sizeof(*fields));

    depth = service_key_path(model, method->input, path, fields);
    if (!depth) {
        say(complaints, method, KEY_FIELDS,
            pool_printf(pool, "key field \"%s\" does not exist in %s", path,
                        method->input->full));
        return;
    }
    for (unsigned i = 0; i < depth; i++) {
        const char *fault = fault_of(fields[i], i + 1 == depth);

        if (!fault)
            continue;
        say(complaints, method, KEY_FIELDS,
            pool_printf(pool, "key field \"%s\": %s %s", path, fields[i]->name,
                        fault));
        return;
    }
}

static void
check_fields(struct complaints *complaints, const struct model *model,
             const struct method *method)
{
    const key_policy *key = method->policy.key;

    for (size_t i = 0; i < key->n_fields; i++) {
        check_path(complaints, model, method, key->fields[i]);
        for (size_t j = 0; j < i; j++)
            if (!strcmp(key->fields[j], key->fields[i]))
                say(complaints, method, KEY_FIELDS,
                    pool_printf(model->pool, "key field \"%s\" is given twice",
                                key->fields[i]));
    }
}

/* A session's number is the channel's to give, in one key space. */
static void
check_session(struct complaints *complaints, const struct method *method)
{
    const method_policy *options = method->policy.options;
    const key_policy *key = method->policy.key;

    if (key->n_fields)
        say(complaints, method, KEY_FIELDS, "key source SESSION has fields");
    if (key->presence == IDEM__V1__KEY__PRESENCE__OPTIONAL)
        say(complaints, method, KEY_PRESENCE,
            "presence OPTIONAL with key source SESSION: the channel numbers "
            "every call");
    if (*options->alias || *options->key_group)
        say(complaints, method, KEY_SOURCE,
            "key source SESSION has one key space: no alias, no key_group");
}

void
lint_key(struct complaints *complaints, const struct model *model,
         const struct method *method)
{
    const key_policy *key = method->policy.key;

    if (!key)
        return;
    if (service_numbers(method) &&
        (key->n_fields ||
         (key->source != IDEM__V1__KEY__SOURCE__SESSION && key->source))) {
        say(complaints, method, key->n_fields ? KEY_FIELDS : KEY_SOURCE,
            "the messages of a stream have the numbers of a session for keys: "
            "source SESSION, or leave it out");
        return;
    }
    if (key->source == IDEM__V1__KEY__SOURCE__FIELDS && !key->n_fields)
        say(complaints, method, KEY_FIELDS, "key source FIELDS names no field");
    if (key->source == IDEM__V1__KEY__SOURCE__MINTED && key->n_fields)
        say(complaints, method, KEY_FIELDS,
            "key source MINTED has fields: make it FIELDS, or drop them");
    if (method->policy.key_session) {
        check_session(complaints, method);
        return;
    }
    if (key->presence == IDEM__V1__KEY__PRESENCE__OPTIONAL && key->n_fields)
        say(complaints, method, KEY_PRESENCE,
            "presence OPTIONAL with key fields: a key made of fields is never "
            "absent");
    check_fields(complaints, model, method);
}
