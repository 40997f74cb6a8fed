#include "emit.h"

#include <string.h>

/* The file and what it imports, imports first, each once. */
static void
gather(const struct model *model, const struct file *file, set_proto *set)
{
    for (size_t i = 0; i < set->n_file; i++)
        if (set->file[i] == file->proto)
            return;
    for (size_t i = 0; i < file->proto->n_dependency; i++) {
        const struct file *import =
            model_file(model, file->proto->dependency[i]);

        if (import)
            gather(model, import, set);
    }
    set->file[set->n_file++] = file->proto;
}

/* Packed as they came, but for the source information. */
static ProtobufCBinaryData
pack(const struct model *model, const struct file *file)
{
    set_proto set = GOOGLE__PROTOBUF__FILE_DESCRIPTOR_SET__INIT;
    Google__Protobuf__SourceCodeInfo **kept;
    ProtobufCBinaryData bytes;

    set.file = pool_alloc(model->pool, model->n_files * sizeof(*set.file));
    gather(model, file, &set);
    kept = pool_alloc(model->pool, set.n_file * sizeof(*kept));
    for (size_t i = 0; i < set.n_file; i++) {
        kept[i] = set.file[i]->source_code_info;
        set.file[i]->source_code_info = NULL;
    }
    bytes.len = protobuf_c_message_get_packed_size(&set.base);
    bytes.data = pool_alloc(model->pool, bytes.len);
    protobuf_c_message_pack(&set.base, bytes.data);
    for (size_t i = 0; i < set.n_file; i++)
        set.file[i]->source_code_info = kept[i];
    return bytes;
}

void
emit_descriptors(struct text *out, const struct model *model,
                 const struct file *file)
{
    ProtobufCBinaryData bytes = pack(model, file);

    text_add(out, "\n/* A FileDescriptorSet: this file and all that it imports,"
                  " imports first. */\n"
                  "static const uint8_t file_descriptors[] = {");
    for (size_t i = 0; i < bytes.len; i++)
        text_add(out, "%s%u,", i % 18 ? "" : "\n    ", bytes.data[i]);
    text_add(out, "\n};\n");
}
