#include "model.h"

#include "names.h"
#include "wire.h"

#include <string.h>

const char *
model_full_name(struct pool *pool, const char *scope, const char *name)
{
    if (!scope || !*scope)
        return name;
    return pool_printf(pool, "%s.%s", scope, name);
}

static void
init_file(struct file *file, struct pool *pool, file_proto *proto)
{
    ProtobufCBinaryData bytes;
    Idem__V1__FilePolicy *policy = NULL;

    file->proto = proto;
    file->prefix = names_snake(pool, proto->package ? proto->package : "");
    if (proto->options &&
        wire_join_unknown(pool, &proto->options->base, OPTION_NUMBER, &bytes))
        policy = idem__v1__file_policy__unpack(&pool->allocator, bytes.len,
                                               bytes.data);
    if (!policy || !*policy->prefix)
        return;
    file->prefix = policy->prefix;
    file->prefix_stated = true;
}

static struct type *
add_type(struct model *model, const struct file *file, size_t outer,
         const char *name)
{
    struct type *type;
    const struct type *around;
    struct pool *pool = model->pool;

    if (model->n_types == model->room) {
        size_t room = model->room ? 2 * model->room : 64;

        model->types =
            pool_grow(pool, model->types, model->n_types * sizeof(*type),
                      room * sizeof(*type));
        model->room = room;
    }
    around = outer == SIZE_MAX ? NULL : &model->types[outer];
    type = &model->types[model->n_types++];
    *type = (struct type){.file = file};
    type->full = model_full_name(
        pool, around ? around->full : file->proto->package, name);
    type->alias = names_join(pool, around ? around->alias : file->prefix,
                             names_snake(pool, name));
    type->shout = names_shout(pool, type->alias);
    type->theirs = names_theirs_type(pool, type->full);
    type->lower = names_theirs_lower(pool, type->full);
    type->upper = names_theirs_upper(pool, type->full);
    return type;
}

static void
add_enum(struct model *model, const struct file *file, size_t outer,
         const struct path *path, enum_proto *proto)
{
    struct type *type = add_type(model, file, outer, proto->name);

    type->enumeration = proto;
    type->path = *path;
}

static void
add_message(struct model *model, const struct file *file, size_t outer,
            const struct path *path, message_proto *proto)
{
    size_t self = model->n_types;
    struct type *type = add_type(model, file, outer, proto->name);

    type->message = proto;
    type->path = *path;
    for (size_t i = 0; i < proto->n_enum_type; i++) {
        struct path inner = path_into(path, MESSAGE_ENUM, i);

        add_enum(model, file, self, &inner, proto->enum_type[i]);
    }
    for (size_t i = 0; i < proto->n_nested_type; i++) {
        struct path inner = path_into(path, MESSAGE_NESTED, i);

        add_message(model, file, self, &inner, proto->nested_type[i]);
    }
}

static void
add_types(struct model *model, const struct file *file)
{
    const struct path top = {0};

    for (size_t i = 0; i < file->proto->n_enum_type; i++) {
        struct path path = path_into(&top, FILE_ENUM, i);

        add_enum(model, file, SIZE_MAX, &path, file->proto->enum_type[i]);
    }
    for (size_t i = 0; i < file->proto->n_message_type; i++) {
        struct path path = path_into(&top, FILE_MESSAGE, i);

        add_message(model, file, SIZE_MAX, &path, file->proto->message_type[i]);
    }
}

void
model_init(struct model *model, struct pool *pool, file_proto **files,
           size_t n_files)
{
    *model = (struct model){.pool = pool, .n_files = n_files};
    model->files = pool_alloc(pool, n_files * sizeof(*model->files));
    for (size_t i = 0; i < n_files; i++) {
        init_file(&model->files[i], pool, files[i]);
        add_types(model, &model->files[i]);
    }
}

const struct file *
model_file(const struct model *model, const char *name)
{
    for (size_t i = 0; i < model->n_files; i++)
        if (!strcmp(model->files[i].proto->name, name))
            return &model->files[i];
    return NULL;
}

const struct type *
model_type(const struct model *model, const char *reference)
{
    for (size_t i = 0; reference && *reference && i < model->n_types; i++)
        if (!strcmp(model->types[i].full, reference + 1))
            return &model->types[i];
    return NULL;
}

/* COLOR_RED of enum Color is RED: our prefix says COLOR already. */
static const char *
short_value(struct pool *pool, const struct type *type, const char *value)
{
    const char *own = names_shout(pool, type->enumeration->name);
    const char *shout = names_shout(pool, value);
    size_t size = strlen(own);

    if (!strncmp(shout, own, size) && shout[size] == '_' && shout[size + 1])
        return shout + size + 1;
    return shout;
}

const char *
model_enum_value(struct pool *pool, const struct type *type, const char *value)
{
    return names_join(pool, type->shout, short_value(pool, type, value));
}

const field_proto *
model_optional(const message_proto *message, size_t oneof)
{
    for (size_t i = 0; i < message->n_field; i++)
        if (message->field[i]->proto3_optional &&
            (size_t)message->field[i]->oneof_index == oneof)
            return message->field[i];
    return NULL;
}
