/* protoc-gen-idem: the plugin of protoc, and with --lower the step in front of
 * protoc-c (docs/language.md). */
#include "lint.h"
#include "lower.h"
#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
fail(const char *what, const char *name)
{
    fprintf(stderr, "protoc-gen-idem: %s %s\n", what, name);
    return 1;
}

static ProtobufCBinaryData
read_all(struct pool *pool, FILE *from)
{
    ProtobufCBinaryData bytes = {0};
    size_t room = 0, got;

    do {
        if (bytes.len == room) {
            room = room ? 2 * room : 1 << 16;
            bytes.data = pool_grow(pool, bytes.data, bytes.len, room);
        }
        got = fread(bytes.data + bytes.len, 1, room - bytes.len, from);
        bytes.len += got;
    } while (got > 0);
    return bytes;
}

static bool
write_message(struct pool *pool, FILE *to, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = pool_alloc(pool, size);

    protobuf_c_message_pack(message, bytes);
    return fwrite(bytes, 1, size, to) == size && fflush(to) == 0;
}

static int
plugin(struct pool *pool)
{
    ProtobufCBinaryData bytes = read_all(pool, stdin);
    const plugin_request *request =
        google__protobuf__compiler__code_generator_request__unpack(
            &pool->allocator, bytes.len, bytes.data);

    if (!request)
        return fail("cannot read", "the request; I am a plugin of protoc");
    if (!write_message(pool, stdout, &plugin_answer(pool, request)->base))
        return fail("cannot write", "the response");
    return 0;
}

static set_proto *
read_set(struct pool *pool, const char *name)
{
    FILE *file = fopen(name, "rb");
    ProtobufCBinaryData bytes;

    if (!file)
        return NULL;
    bytes = read_all(pool, file);
    fclose(file);
    return google__protobuf__file_descriptor_set__unpack(&pool->allocator,
                                                         bytes.len, bytes.data);
}

static bool
write_set(struct pool *pool, const char *name, const set_proto *set)
{
    FILE *file = fopen(name, "wb");
    bool written;

    if (!file)
        return false;
    written = write_message(pool, file, &set->base);
    return fclose(file) == 0 && written;
}

static int
lower(struct pool *pool, const char *in, const char *out)
{
    set_proto *set = read_set(pool, in);
    struct complaints complaints = {.pool = pool};
    struct model model;

    if (!set)
        return fail("no descriptor set:", in);
    model_init(&model, pool, set->file, set->n_file);
    for (size_t i = 0; i < model.n_files; i++)
        if (!model_options_only(&model, &model.files[i]))
            lint_shape(&complaints, &model.files[i]);
    if (complaints.count) {
        fprintf(stderr, "%s\n", complaints_text(&complaints));
        return 1;
    }
    lower_files(&model);
    return write_set(pool, out, set) ? 0 : fail("cannot write", out);
}

int
main(int argc, char **argv)
{
    struct pool pool;
    int result;

    pool_init(&pool);
    if (argc == 4 && !strcmp(argv[1], "--lower"))
        result = lower(&pool, argv[2], argv[3]);
    else if (argc == 1)
        result = plugin(&pool);
    else
        result = fail("usage:", "protoc-gen-idem [--lower IN.fds OUT.fds]");
    pool_fini(&pool);
    return result;
}
