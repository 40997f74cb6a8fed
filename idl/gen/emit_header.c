#include "emit.h"

#include "names.h"

#include <ctype.h>
#include <string.h>

const char *
emit_name(struct pool *pool, const char *proto, const char *end)
{
    size_t size = strlen(proto);

    if (size > 6 && !strcmp(proto + size - 6, ".proto"))
        size -= 6;
    return pool_printf(pool, "%.*s%s", (int)size, proto, end);
}

static const char *
guard(struct pool *pool, const char *proto)
{
    struct text text = {.pool = pool};

    for (const char *at = emit_name(pool, proto, ""); *at; at++) {
        if (isalnum((unsigned char)*at))
            text_add(&text, "%c", toupper((unsigned char)*at));
        else if (*at == '/' || *at == '_')
            text_add(&text, "_");
        else
            text_add(&text, "_%02X", (unsigned char)*at);
    }
    text_add(&text, "_IDEM_H");
    return text.at;
}

static bool
has_statements(const struct service *services, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < services[i].n_methods; j++)
            if (services[i].methods[j].policy.states)
                return true;
    return false;
}

static bool
has_streams(const struct service *services, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < services[i].n_methods; j++)
            if (service_streams(&services[i].methods[j]))
                return true;
    return false;
}

static void
emit_includes(struct text *out, const struct model *model,
              const file_proto *file, const struct service *services,
              size_t n_services)
{
    text_add(out, "#include \"%s\"\n",
             emit_name(out->pool, file->name, ".pb-c.h"));
    for (size_t i = 0; i < file->n_dependency; i++)
        if (model_import_needed(model, file, file->dependency[i], true))
            text_add(out, "#include \"%s\"\n",
                     emit_name(out->pool, file->dependency[i], ".idem.h"));
    if (n_services > 0)
        text_add(out, "\n#include <idem/channel.h>\n"
                      "#include <idem/context.h>\n"
                      "#include <idem/server.h>\n");
    if (has_statements(services, n_services))
        text_add(out, "#include <idem/statement.h>\n");
    if (has_streams(services, n_services))
        text_add(out, "#include <idem/stream.h>\n");
}

static void
emit_slot(struct text *out, const struct method *method)
{
    text_add(out,
             "    enum idem_status (*%s)(struct idem_context *context,\n"
             "        const %s *request,\n"
             "        %s *reply);\n",
             method->slot, method->input->alias, method->output->alias);
}

/* dispatch: ASYNC. */
static void
emit_later_slot(struct text *out, const struct method *method)
{
    text_add(out,
             "    /* May return before the answer is there: fill reply, then\n"
             "     * idem_context_complete(), once, on any thread. */\n"
             "    void (*%s)(struct idem_context *context,\n"
             "        const %s *request,\n"
             "        %s *reply);\n",
             method->slot, method->input->alias, method->output->alias);
}

/* transaction: STATEMENT. */
static void
emit_halves(struct text *out, const struct method *method)
{
    text_add(
        out,
        "    /* First: which statements are to be run (<idem/statement.h>).\n"
        "     * Both may run more than once and must not block. */\n"
        "    enum idem_status (*%s)(\n"
        "        struct idem_context *context,\n"
        "        const %s *request,\n"
        "        struct idem_statements *statements);\n",
        method->statements_slot, method->input->alias);
    text_add(out,
             "    /* Then: the reply; rows[i] are those of statement i. */\n"
             "    enum idem_status (*%s)(struct idem_context *context,\n"
             "        const %s *request,\n"
             "        const struct idem_rows *const *rows,\n"
             "        %s *reply);\n",
             method->reply_slot, method->input->alias, method->output->alias);
}

static void
emit_probe_slot(struct text *out, const struct method *method)
{
    text_add(out,
             "    /* %s ended half-way: did it take effect? Asks, never acts.\n"
             "     * DONE: fill reply, or say the final error with\n"
             "     * idem_context_fail(). NOT_DONE: the handler runs again,\n"
             "     * with the same derived keys. UNKNOWN: in doubt. */\n"
             "    enum idem_probed (*%s_probe)(struct idem_context *context,\n"
             "        const %s *request,\n"
             "        %s *reply);\n",
             method->proto->name, method->snake, method->input->alias,
             method->output->alias);
}

static void
emit_rebuild_slot(struct text *out, const struct method *method)
{
    text_add(
        out,
        "    /* %s is done and its reply was too large to be kept: make it\n"
        "     * again. Reads only. */\n"
        "    enum idem_status (*%s_rebuild)(struct idem_context *context,\n"
        "        const %s *request,\n"
        "        %s *reply);\n",
        method->proto->name, method->snake, method->input->alias,
        method->output->alias);
}

static void
emit_handlers(struct text *out, const struct service *service)
{
    if (has_streams(service, 1))
        text_add(out, "\n");
    for (size_t i = 0; i < service->n_methods; i++)
        if (service_streams(&service->methods[i]) &&
            !service_numbers(&service->methods[i]))
            text_add(out, "struct %s_server_stream;\n",
                     service->methods[i].name);
    text_add(out,
             "\n/* What answers %s. An empty slot answers UNIMPLEMENTED.\n"
             " * A handler fills reply and returns IDEM_OK, or fails with\n"
             " * idem_context_fail(). */\n"
             "struct %s_handlers {\n",
             service->full, service->name);
    for (size_t i = 0; i < service->n_methods; i++) {
        const struct method *method = &service->methods[i];

        text_comment(out, "    ",
                     path_comment(service->file->proto, &method->path));
        if (method->policy.states)
            emit_halves(out, method);
        else if (service_streams(method))
            emit_stream_slot(out, method);
        else if (method->policy.answers_later)
            emit_later_slot(out, method);
        else
            emit_slot(out, method);
        if (service_probes(method))
            emit_probe_slot(out, method);
        if (service_rebuilds(method))
            emit_rebuild_slot(out, method);
    }
    text_add(out, "};\n");
    text_add(out,
             "\n/* Before the server starts. handlers is copied; user is what\n"
             " * idem_context_user() gives. */\n"
             "enum idem_status %s_register(struct idem_server *server,\n"
             "    const struct %s_handlers *handlers,\n"
             "    void *user, struct idem_error *err) IDEM_MUST_CHECK;\n",
             service->name, service->name);
}

static void
emit_names(struct text *out, const struct method *method)
{
    static const char *const kinds[] = {"", ", a client stream",
                                        ", a server stream",
                                        ", a bidirectional stream"};
    unsigned kind =
        service_client_streams(method) + 2u * service_server_streams(method);

    text_add(out, "\n/* %s: mode %s%s%s. */\n", method->full,
             method->policy.mode,
             method->policy.read_only ? ", no side effects" : "", kinds[kind]);
    text_comment(out, "",
                 path_comment(method->service->file->proto, &method->path));
    text_add(out,
             "#define %s_METHOD \"%s\"\n"
             "#define %s_method (%s_methods[%zu])\n",
             method->shout, method->full, method->name, method->service->name,
             (size_t)(method - method->service->methods));
}

static void
emit_stubs(struct text *out, const struct method *method)
{
    const char *name = method->name;
    const char *input = method->input->alias, *output = method->output->alias;

    text_add(out,
             "\n/* Call and wait. On OK *reply is the caller's, to be freed\n"
             " * with %s_free(). reply, options and outcome may be NULL. */\n"
             "enum idem_status %s(struct idem_channel *channel,\n"
             "    const %s *request,\n"
             "    %s **reply,\n"
             "    const struct idem_call_options *options,\n"
             "    struct idem_outcome *outcome);\n",
             output, name, input, output);
    text_add(out,
             "\n/* Start the call; done runs exactly once, on a thread of the\n"
             " * library. reply is NULL unless the outcome is OK, and done's\n"
             " * only while it runs. Give the handle back with\n"
             " * idem_call_release(). */\n"
             "typedef void %s_done(struct idem_call *call,\n"
             "    const %s *reply,\n"
             "    const struct idem_outcome *outcome);\n"
             "struct idem_call *%s_async(struct idem_channel *channel,\n"
             "    const %s *request,\n"
             "    const struct idem_call_options *options,\n"
             "    %s_done *done);\n",
             name, output, name, input, name);
}

/* What is recorded can be read without a call. */
static void
emit_reader(struct text *out, const struct method *method)
{
    text_add(out,
             "\n/* The reply from its bytes, as idem_resolve() gives them. On\n"
             " * OK *reply is the caller's, as above. */\n"
             "enum idem_status %s_read_reply(\n"
             "    struct idem_bytes bytes, %s **reply,\n"
             "    struct idem_error *err) IDEM_MUST_CHECK;\n",
             method->name, method->output->alias);
}

static void
emit_service(struct text *out, const struct service *service)
{
    const char *words = path_comment(service->file->proto, &service->path);

    text_add(out, "\n/* %s ", service->full);
    for (size_t i = strlen(service->full); i < 71; i++)
        text_add(out, "-");
    text_add(out, " */\n\n");
    text_comment(out, "", words);
    text_add(out,
             "#define %s_SERVICE \"%s\"\n"
             "extern const struct idem_method %s_methods[%zu];\n"
             "extern const struct idem_service %s_service;\n",
             names_shout(out->pool, service->name), service->full,
             service->name, service->n_methods, service->name);
    emit_handlers(out, service);
    for (size_t i = 0; i < service->n_methods; i++) {
        emit_names(out, &service->methods[i]);
        if (service_streams(&service->methods[i]))
            emit_stream_header(out, &service->methods[i]);
        else
            emit_stubs(out, &service->methods[i]);
        if (service->methods[i].policy.records &&
            !service_streams(&service->methods[i]))
            emit_reader(out, &service->methods[i]);
    }
}

void
emit_header(struct text *out, const struct model *model,
            const struct file *file)
{
    size_t n;
    const struct service *services = services_of(model, file, &n);
    const char *name = file->proto->name;

    text_add(out,
             "/* Generated by protoc-gen-idem from %s. Do not edit. */\n"
             "#ifndef %s\n#define %s\n\n",
             name, guard(out->pool, name), guard(out->pool, name));
    emit_includes(out, model, file->proto, services, n);
    text_add(out, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    emit_types(out, model, file);
    for (size_t i = 0; i < n; i++)
        emit_service(out, &services[i]);
    text_add(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}
