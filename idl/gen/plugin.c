#include "plugin.h"

#include "emit.h"
#include "lint.h"

typedef Google__Protobuf__Compiler__CodeGeneratorResponse__File plugin_file;

#define FEATURE_PROTO3_OPTIONAL 1

static char *
checked(const struct model *model, const struct file *file)
{
    struct complaints complaints = {.pool = model->pool};

    lint_shape(&complaints, file);
    lint_policies(&complaints, model, file);
    lint_names(&complaints, model, file);
    if (!complaints.count)
        return NULL;
    /* protoc writes "--idem_out: " in front: begin on a line of our own. */
    return pool_printf(model->pool, "\n%s", complaints_text(&complaints));
}

static void
add_file(plugin_response *response, struct pool *pool, const char *name,
         const struct text *content)
{
    static const plugin_file empty =
        GOOGLE__PROTOBUF__COMPILER__CODE_GENERATOR_RESPONSE__FILE__INIT;
    plugin_file *file = pool_grow(pool, &empty, sizeof(empty), sizeof(empty));

    file->name = pool_printf(pool, "%s", name);
    file->content = content->at;
    response->file[response->n_file++] = file;
}

static void
generate(const struct model *model, const struct file *file,
         plugin_response *response)
{
    struct text header = {.pool = model->pool}, source = {.pool = model->pool};
    const char *name = file->proto->name;

    response->error = checked(model, file);
    if (response->error)
        return;
    emit_header(&header, model, file);
    emit_source(&source, model, file);
    add_file(response, model->pool, emit_name(model->pool, name, ".idem.h"),
             &header);
    add_file(response, model->pool, emit_name(model->pool, name, ".idem.c"),
             &source);
}

plugin_response *
plugin_answer(struct pool *pool, const plugin_request *request)
{
    plugin_response *response = pool_alloc(pool, sizeof(*response));
    struct model model;

    google__protobuf__compiler__code_generator_response__init(response);
    model_init(&model, pool, request->proto_file, request->n_proto_file);
    response->has_supported_features = 1;
    response->supported_features = FEATURE_PROTO3_OPTIONAL;
    response->file = pool_alloc(pool, 2 * request->n_file_to_generate *
                                          sizeof(*response->file));
    for (size_t i = 0; i < request->n_file_to_generate && !response->error; i++)
        generate(&model, model_file(&model, request->file_to_generate[i]),
                 response);
    if (response->error)
        response->n_file = 0;
    return response;
}
