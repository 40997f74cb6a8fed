#include "model.h"

#include <string.h>

/* Whether the type is the import's, or of what it imports publicly. */
static bool
gives(const struct model *model, const char *import, const struct type *type)
{
    const struct file *file = model_file(model, import);

    if (!file || !type)
        return false;
    if (type->file == file)
        return true;
    for (size_t i = 0; i < file->proto->n_public_dependency; i++) {
        size_t at = (size_t)file->proto->public_dependency[i];

        if (gives(model, file->proto->dependency[at], type))
            return true;
    }
    return false;
}

static bool
message_needs(const struct model *model, const message_proto *message,
              const char *import)
{
    for (size_t i = 0; i < message->n_field; i++)
        if (gives(model, import,
                  model_type(model, message->field[i]->type_name)))
            return true;
    for (size_t i = 0; i < message->n_nested_type; i++)
        if (message_needs(model, message->nested_type[i], import))
            return true;
    return false;
}

static bool
service_needs(const struct model *model, const service_proto *service,
              const char *import)
{
    for (size_t i = 0; i < service->n_method; i++) {
        const method_proto *method = service->method[i];

        if (gives(model, import, model_type(model, method->input_type)) ||
            gives(model, import, model_type(model, method->output_type)))
            return true;
    }
    return false;
}

static bool
is_public(const file_proto *file, const char *import)
{
    for (size_t i = 0; i < file->n_public_dependency; i++)
        if (!strcmp(file->dependency[file->public_dependency[i]], import))
            return true;
    return false;
}

bool
model_import_needed(const struct model *model, const file_proto *file,
                    const char *import, bool methods)
{
    if (is_public(file, import))
        return true;
    for (size_t i = 0; i < file->n_message_type; i++)
        if (message_needs(model, file->message_type[i], import))
            return true;
    for (size_t i = 0; methods && i < file->n_service; i++)
        if (service_needs(model, file->service[i], import))
            return true;
    return false;
}

bool
model_options_only(const struct model *model, const struct file *file)
{
    bool imported = false;

    for (size_t i = 0; i < model->n_files; i++) {
        const file_proto *other = model->files[i].proto;

        for (size_t j = 0; j < other->n_dependency; j++) {
            if (strcmp(other->dependency[j], file->proto->name))
                continue;
            imported = true;
            if (model_import_needed(model, other, other->dependency[j], true))
                return false;
        }
    }
    return imported;
}
