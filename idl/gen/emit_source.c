#include "emit.h"

#include "names.h"

#include <string.h>

static void
emit_frees(struct text *out, const struct model *model, const struct file *file)
{
    for (size_t i = 0; i < model->n_types; i++) {
        const struct type *type = &model->types[i];

        if (type->file != file || !type->message)
            continue;
        text_add(out,
                 "\nvoid\n%s_free(%s *message)\n{\n"
                 "    protobuf_c_message_free_unpacked("
                 "(struct ProtobufCMessage *)message,\n"
                 "                                     NULL);\n}\n",
                 type->alias, type->alias);
    }
}

void
emit_invoke_head(struct text *out, const struct method *method,
                 const char *returns, const char *verb)
{
    text_add(out,
             "\nstatic %s\n"
             "%s_%s(const void *handlers,\n"
             "    struct idem_context *context,\n"
             "    const struct ProtobufCMessage *request,\n"
             "    struct ProtobufCMessage *reply)\n{\n"
             "    const struct %s_handlers *table = handlers;\n",
             returns, verb, method->name, method->service->name);
}

/* A function that calls what is in a slot; what is "handler" or "rebuild". */
static void
emit_invoke(struct text *out, const struct method *method, const char *verb,
            const char *slot, const char *what)
{
    emit_invoke_head(out, method, "enum idem_status", verb);
    text_add(out,
             "\n    if (!table->%s)\n"
             "        return idem_context_fail(context, IDEM_UNIMPLEMENTED,\n"
             "            \"%%s has no %s\", %s_METHOD);\n",
             slot, what, method->shout);
    text_add(out,
             "    return table->%s(context,\n"
             "        (const %s *)request,\n"
             "        (%s *)reply);\n}\n",
             slot, method->input->alias, method->output->alias);
}

static void
emit_invoke_probe(struct text *out, const struct method *method)
{
    emit_invoke_head(out, method, "enum idem_probed", "probe");
    text_add(out,
             "\n    if (!table->%s_probe)\n"
             "        return IDEM_PROBED_UNKNOWN;\n",
             method->snake);
    text_add(out,
             "    return table->%s_probe(context,\n"
             "        (const %s *)request,\n"
             "        (%s *)reply);\n}\n",
             method->snake, method->input->alias, method->output->alias);
}

/* Two slots, one after the other: which of them is said by the context. */
static void
emit_invoke_halves(struct text *out, const struct method *method)
{
    emit_invoke_head(out, method, "enum idem_status", "invoke");
    text_add(out,
             "    const struct idem_rows *const *rows =\n"
             "        idem_context_rows(context);\n\n"
             "    if (!table->%s || !table->%s)\n"
             "        return idem_context_fail(context, IDEM_UNIMPLEMENTED,\n"
             "            \"%%s has no handler\", %s_METHOD);\n",
             method->statements_slot, method->reply_slot, method->shout);
    text_add(out,
             "    if (!rows)\n"
             "        return table->%s(context,\n"
             "            (const %s *)request,\n"
             "            idem_context_statements(context));\n",
             method->statements_slot, method->input->alias);
    text_add(out,
             "    return table->%s(context,\n"
             "        (const %s *)request, rows,\n"
             "        (%s *)reply);\n}\n",
             method->reply_slot, method->input->alias, method->output->alias);
}

/* The slot returns nothing: what it says is idem_context_complete's. */
static void
emit_invoke_later(struct text *out, const struct method *method)
{
    emit_invoke_head(out, method, "enum idem_status", "invoke");
    text_add(out,
             "\n    if (table->%s)\n"
             "        table->%s(context,\n"
             "            (const %s *)request,\n"
             "            (%s *)reply);\n",
             method->slot, method->slot, method->input->alias,
             method->output->alias);
    text_add(out,
             "    else\n"
             "        idem_context_complete(context,\n"
             "            idem_context_fail(context, IDEM_UNIMPLEMENTED,\n"
             "                \"%%s has no handler\", %s_METHOD));\n"
             "    return IDEM_OK;\n}\n",
             method->shout);
}

static void
emit_invokes(struct text *out, const struct method *method)
{
    if (method->policy.states)
        emit_invoke_halves(out, method);
    else if (service_streams(method))
        emit_stream_invoke(out, method);
    else if (method->policy.answers_later)
        emit_invoke_later(out, method);
    else
        emit_invoke(out, method, "invoke", method->slot, "handler");
    if (service_probes(method))
        emit_invoke_probe(out, method);
    if (service_rebuilds(method))
        emit_invoke(out, method, "rebuild",
                    pool_printf(out->pool, "%s_rebuild", method->snake),
                    "rebuild");
}

static void
emit_blocking(struct text *out, const struct method *method)
{
    text_add(out,
             "\nenum idem_status\n"
             "%s(struct idem_channel *channel,\n"
             "    const %s *request,\n"
             "    %s **reply,\n"
             "    const struct idem_call_options *options,\n"
             "    struct idem_outcome *outcome)\n{\n",
             method->name, method->input->alias, method->output->alias);
    text_add(out,
             "    struct ProtobufCMessage *raw = NULL;\n"
             "    enum idem_status status = idem_channel_call(channel,\n"
             "        &%s_method,\n"
             "        (const struct ProtobufCMessage *)request,\n"
             "        reply ? &raw : NULL, options, outcome);\n\n"
             "    if (reply && status == IDEM_OK)\n"
             "        *reply = (%s *)raw;\n"
             "    return status;\n}\n",
             method->name, method->output->alias);
}

static void
emit_async(struct text *out, const struct method *method)
{
    const char *name = method->name;

    text_add(out,
             "\nstatic void\n"
             "finish_%s(struct idem_call *call,\n"
             "    const struct ProtobufCMessage *reply,\n"
             "    const struct idem_outcome *outcome, void (*author)(void))\n"
             "{\n"
             "    %s_done *done = (%s_done *)author;\n\n"
             "    if (done)\n"
             "        done(call, (const %s *)reply, outcome);\n}\n",
             name, name, name, method->output->alias);
    text_add(out,
             "\nstruct idem_call *\n"
             "%s_async(struct idem_channel *channel,\n"
             "    const %s *request,\n"
             "    const struct idem_call_options *options,\n"
             "    %s_done *done)\n{\n"
             "    return idem_channel_start(channel,\n"
             "        &%s_method,\n"
             "        (const struct ProtobufCMessage *)request, options,\n"
             "        finish_%s,\n"
             "        (void (*)(void))done);\n}\n",
             name, method->input->alias, name, name, name);
}

static void
emit_reader(struct text *out, const struct method *method)
{
    text_add(out,
             "\nenum idem_status\n"
             "%s_read_reply(struct idem_bytes bytes,\n"
             "    %s **reply,\n"
             "    struct idem_error *err)\n{\n"
             "    struct ProtobufCMessage *raw;\n"
             "    enum idem_status status = idem_channel_read_reply(\n"
             "        &%s_method, bytes, &raw, err);\n\n",
             method->name, method->output->alias, method->name);
    text_add(out,
             "    if (status == IDEM_OK)\n"
             "        *reply = (%s *)raw;\n"
             "    return status;\n}\n",
             method->output->alias);
}

/* What an option promises must be there, or it would be found out by the first
 * crash. */
static void
emit_demand(struct text *out, const struct method *method, const char *option,
            const char *slot)
{
    text_add(out,
             "    if (handlers->%s && !handlers->%s_%s)\n"
             "        return idem_fail(err, IDEM_FAILED_PRECONDITION,\n"
             "            \"%%s states %s: fill the slot %s_%s\",\n"
             "            %s_METHOD);\n",
             method->slot, method->snake, slot, option, method->snake, slot,
             method->shout);
}

static void
emit_register(struct text *out, const struct service *service)
{
    const char *name = service->name;

    text_add(out,
             "\nenum idem_status\n"
             "%s_register(struct idem_server *server,\n"
             "    const struct %s_handlers *handlers,\n"
             "    void *user, struct idem_error *err)\n{\n",
             name, name);
    for (size_t i = 0; i < service->n_methods; i++) {
        const struct method *method = &service->methods[i];

        if (service_probes(method))
            emit_demand(out, method, "after_crash: PROBE", "probe");
        if (service_rebuilds(method))
            emit_demand(out, method, "oversize: REBUILD", "rebuild");
    }
    text_add(out,
             "    return idem_server_register(server, &%s_service,\n"
             "        handlers, sizeof(*handlers), user, err);\n}\n",
             name);
}

static void
emit_service(struct text *out, const struct model *model,
             const struct service *service)
{
    for (size_t i = 0; i < service->n_methods; i++)
        emit_invokes(out, &service->methods[i]);
    emit_methods(out, model, service);
    text_add(
        out,
        "\nconst struct idem_service %s_service = {\n"
        "    .name = %s_SERVICE,\n"
        "    .methods = %s_methods,\n"
        "    .n_methods = %zu,\n"
        "    .descriptors = {file_descriptors, sizeof(file_descriptors)},\n"
        "};\n",
        service->name, names_shout(out->pool, service->name), service->name,
        service->n_methods);
    emit_register(out, service);
    for (size_t i = 0; i < service->n_methods; i++) {
        if (service_streams(&service->methods[i])) {
            emit_stream_source(out, &service->methods[i]);
        } else {
            emit_blocking(out, &service->methods[i]);
            emit_async(out, &service->methods[i]);
        }
        if (service->methods[i].policy.records &&
            !service_streams(&service->methods[i]))
            emit_reader(out, &service->methods[i]);
    }
}

void
emit_source(struct text *out, const struct model *model,
            const struct file *file)
{
    size_t n;
    const struct service *services = services_of(model, file, &n);

    text_add(out,
             "/* Generated by protoc-gen-idem from %s. Do not edit. */\n"
             "#include \"%s\"\n",
             file->proto->name,
             emit_name(out->pool, file->proto->name, ".idem.h"));
    emit_frees(out, model, file);
    if (n > 0)
        emit_descriptors(out, model, file);
    for (size_t i = 0; i < n; i++)
        emit_service(out, model, &services[i]);
}
