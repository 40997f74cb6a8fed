#include "emit.h"

#include "names.h"

static void
emit_enum(struct text *out, const struct type *type)
{
    const enum_proto *proto = type->enumeration;

    text_add(out, "\n");
    text_comment(out, "", path_comment(type->file->proto, &type->path));
    text_add(out, "typedef %s %s;\n", type->theirs, type->alias);
    for (size_t i = 0; i < proto->n_value; i++) {
        struct path path = path_into(&type->path, ENUM_VALUE, i);

        text_comment(out, "", path_comment(type->file->proto, &path));
        text_add(out, "#define %s %s__%s\n",
                 model_enum_value(out->pool, type, proto->value[i]->name),
                 type->upper, proto->value[i]->name);
    }
}

/* The constant that protoc-c gives a oneof's case. */
static const char *
their_case(struct pool *pool, const struct type *type, const char *oneof,
           const char *field)
{
    return pool_printf(pool, "%s__%s_%s", type->upper,
                       names_theirs_upper(pool, oneof),
                       names_theirs_upper(pool, field));
}

/* proto3 optional: one constant that says that the field is there. */
static void
emit_presence(struct text *out, const struct type *type,
              const field_proto *field)
{
    const char *oneof = type->message->oneof_decl[field->oneof_index]->name;
    struct pool *pool = out->pool;

    text_add(out, "#define %s_HAS_%s %s\n", type->shout,
             names_shout(pool, field->name),
             their_case(pool, type, oneof, field->name));
}

static void
emit_cases(struct text *out, const struct type *type, size_t index)
{
    const message_proto *message = type->message;
    struct pool *pool = out->pool;
    const char *oneof = message->oneof_decl[index]->name;
    const char *shout = names_shout(pool, oneof);

    text_add(out, "typedef %s__%sCase %s_%s_case;\n", type->theirs,
             names_theirs_type(pool, oneof), type->alias,
             names_snake(pool, oneof));
    text_add(out, "#define %s_%s_NOT_SET %s__%s__NOT_SET\n", type->shout, shout,
             type->upper, names_theirs_upper(pool, oneof));
    for (size_t i = 0; i < message->n_field; i++) {
        const field_proto *field = message->field[i];

        if (field->has_oneof_index && (size_t)field->oneof_index == index)
            text_add(out, "#define %s_%s_%s %s\n", type->shout, shout,
                     names_shout(pool, field->name),
                     their_case(pool, type, oneof, field->name));
    }
}

static void
emit_message(struct text *out, const struct type *type)
{
    const message_proto *message = type->message;

    text_add(out, "\n");
    text_comment(out, "", path_comment(type->file->proto, &type->path));
    text_add(out, "typedef %s %s;\n", type->theirs, type->alias);
    text_add(out, "#define %s_INIT %s__INIT\n", type->shout, type->upper);
    for (size_t i = 0; i < message->n_oneof_decl; i++) {
        const field_proto *optional = model_optional(message, i);

        if (optional)
            emit_presence(out, type, optional);
        else
            emit_cases(out, type, i);
    }
    text_add(out, "/* NULL is fine. */\nvoid %s_free(%s *message);\n",
             type->alias, type->alias);
}

void
emit_types(struct text *out, const struct model *model, const struct file *file)
{
    for (size_t i = 0; i < model->n_types; i++) {
        const struct type *type = &model->types[i];

        if (type->file != file)
            continue;
        if (type->message)
            emit_message(out, type);
        else
            emit_enum(out, type);
    }
}
