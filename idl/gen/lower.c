#include "lower.h"

#include "wire.h"

#define PB_C 1019 /* protobuf-c's own options */

/* ProtobufCFileOptions: const_strings = true. */
static const uint8_t const_strings[] = {4 << 3, 1};

static void
lower_message(message_proto *message)
{
    for (size_t i = 0; i < message->n_field; i++)
        message->field[i]->has_proto3_optional = 0;
    for (size_t i = 0; i < message->n_nested_type; i++)
        lower_message(message->nested_type[i]);
    message->n_extension = 0;
    if (message->options)
        wire_strip_unknown(&message->options->base, PB_C);
}

static void
lower_imports(const struct model *model, file_proto *file)
{
    size_t kept = 0, public = 0;

    for (size_t i = 0; i < file->n_dependency; i++) {
        if (!model_import_needed(model, file, file->dependency[i], false))
            continue;
        /* Public imports are always kept, in their order. */
        if (public < file->n_public_dependency &&
            file->public_dependency[public] == (int32_t)i)
            file->public_dependency[public ++] = (int32_t)kept;
        file->dependency[kept++] = file->dependency[i];
    }
    file->n_dependency = kept;
    file->n_weak_dependency = 0;
}

static void
lower_options(struct pool *pool, file_proto *file)
{
    if (!file->options) {
        file->options = pool_alloc(pool, sizeof(*file->options));
        google__protobuf__file_options__init(file->options);
    }
    /* CODE_SIZE would leave the names out of protobuf-c's descriptors. */
    file->options->has_optimize_for = 0;
    wire_strip_unknown(&file->options->base, PB_C);
    wire_add_unknown(pool, &file->options->base, PB_C, const_strings,
                     sizeof(const_strings));
}

static void
lower_file(const struct model *model, file_proto *file)
{
    lower_imports(model, file);
    for (size_t i = 0; i < file->n_message_type; i++)
        lower_message(file->message_type[i]);
    file->n_service = 0;
    file->n_extension = 0;
    lower_options(model->pool, file);
}

void
lower_files(const struct model *model)
{
    /* From the last: whether an import is needed looks at public imports of the
     * files before. */
    for (size_t i = model->n_files; i-- > 0;)
        lower_file(model, model->files[i].proto);
}
