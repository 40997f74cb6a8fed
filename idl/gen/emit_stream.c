#include "emit.h"

/* The glue of methods of many messages: what the header declared
 * (emit_stream_header.c), over what <idem/stream.h> has. */

static void
emit_resume_invokes(struct text *out, const struct method *method)
{
    emit_invoke_head(out, method, "enum idem_status", "invoke");
    text_add(out, "\n    (void)reply;\n");
    text_add(out,
             "    if (!table->%s || !table->%s_messages)\n"
             "        return idem_context_fail(context, IDEM_UNIMPLEMENTED,\n"
             "            \"%%s has no handler\", %s_METHOD);\n"
             "    return table->%s(context, (const %s *)request);\n}\n",
             method->slot, method->snake, method->shout, method->slot,
             method->input->alias);
    emit_invoke_head(out, method, "enum idem_status", "messages");
    text_add(out,
             "\n    (void)reply;\n"
             "    return table->%s_messages(context,\n"
             "        (const %s *)request,\n"
             "        (struct %s_server_stream *)\n"
             "            idem_context_stream(context));\n}\n",
             method->snake, method->input->alias, method->name);
}

/* A message, and the end of a client stream; the stream itself runs nothing. */
static void
emit_numbered_invokes(struct text *out, const struct method *method)
{
    bool replies = service_server_streams(method);

    emit_invoke_head(out, method, "enum idem_status", "invoke");
    text_add(out,
             "\n    if (!table->%s)\n"
             "        return idem_context_fail(context, IDEM_UNIMPLEMENTED,\n"
             "            \"%%s has no handler\", %s_METHOD);\n",
             method->slot, method->shout);
    if (!replies)
        text_add(out, "    (void)reply;\n");
    text_add(out,
             "    return table->%s(context,\n"
             "        (const %s *)request",
             method->slot, method->input->alias);
    if (replies)
        text_add(out, ",\n        (%s *)reply", method->output->alias);
    text_add(out, ");\n}\n");
    if (replies)
        return;
    emit_invoke_head(out, method, "enum idem_status", "last");
    text_add(out,
             "\n    (void)request;\n"
             "    if (!table->%s_end)\n"
             "        return idem_context_fail(context, IDEM_UNIMPLEMENTED,\n"
             "            \"%%s has no handler of its end\", %s_METHOD);\n"
             "    return table->%s_end(context, (%s *)reply);\n}\n",
             method->snake, method->shout, method->snake,
             method->output->alias);
}

void
emit_stream_invoke(struct text *out, const struct method *method)
{
    if (service_resumes(method)) {
        emit_resume_invokes(out, method);
        return;
    }
    if (service_numbers(method)) {
        emit_numbered_invokes(out, method);
        return;
    }
    emit_invoke_head(out, method, "enum idem_status", "invoke");
    text_add(out,
             "\n    if (!table->%s)\n"
             "        return idem_context_fail(context, IDEM_UNIMPLEMENTED,\n"
             "            \"%%s has no handler\", %s_METHOD);\n",
             method->slot, method->shout);
    if (service_client_streams(method))
        text_add(out, "    (void)request;\n");
    if (service_server_streams(method))
        text_add(out, "    (void)reply;\n");
    text_add(out, "    return table->%s(context,\n", method->slot);
    if (!service_client_streams(method))
        text_add(out, "        (const %s *)request,\n", method->input->alias);
    text_add(out,
             "        (struct %s_server_stream *)\n"
             "            idem_context_stream(context)",
             method->name);
    if (!service_server_streams(method))
        text_add(out, ",\n        (%s *)reply", method->output->alias);
    text_add(out, ");\n}\n");
}

/* The typed callbacks of one side, called by the library's untyped ones. */
struct glue {
    const char *side;           /* "" or "server_" */
    const struct type *message; /* NULL: none come */
    bool writes;
    const struct type *reply; /* that end gets; NULL: none */
    bool status;              /* end gets this instead of an outcome */
};

static void
emit_glue_message(struct text *out, const char *name, const struct glue *glue)
{
    const char *side = glue->side;

    text_add(out,
             "\nstatic bool\n"
             "%smessage_%s(struct idem_stream *stream,\n"
             "    const void *callbacks,\n"
             "    const struct ProtobufCMessage *message)\n{\n"
             "    const struct %s_%scallbacks *to = callbacks;\n\n"
             "    return !to->message ||\n"
             "        to->message((struct %s_%sstream *)stream,\n"
             "            (const %s *)message);\n}\n",
             side, name, name, side, name, side, glue->message->alias);
}

static void
emit_glue_writable(struct text *out, const char *name, const struct glue *glue)
{
    const char *side = glue->side;

    text_add(out,
             "\nstatic void\n"
             "%swritable_%s(struct idem_stream *stream,\n"
             "    const void *callbacks)\n{\n"
             "    const struct %s_%scallbacks *to = callbacks;\n\n"
             "    if (to->writable)\n"
             "        to->writable((struct %s_%sstream *)stream);\n}\n",
             side, name, name, side, name, side);
}

static void
emit_glue_end(struct text *out, const char *name, const struct glue *glue)
{
    const char *side = glue->side;

    text_add(out,
             "\nstatic void\n"
             "%send_%s(struct idem_stream *stream,\n"
             "    const void *callbacks,\n"
             "    const struct ProtobufCMessage *reply,\n"
             "    const struct idem_outcome *outcome)\n{\n"
             "    const struct %s_%scallbacks *to = callbacks;\n\n",
             side, name, name, side);
    if (!glue->reply)
        text_add(out, "    (void)reply;\n");
    text_add(out,
             "    if (to->end)\n"
             "        to->end((struct %s_%sstream *)stream,",
             name, side);
    if (glue->reply)
        text_add(out, "\n            (const %s *)reply,", glue->reply->alias);
    text_add(out, " %s);\n", glue->status ? "outcome->status" : "outcome");
    if (glue->status)
        text_add(out, "    else\n"
                      "        idem_stream_close(stream, outcome->status);\n");
    text_add(out, "}\n");
}

static void
emit_glue(struct text *out, const char *name, const struct glue *glue)
{
    const char *side = glue->side;

    if (glue->message)
        emit_glue_message(out, name, glue);
    if (glue->writes)
        emit_glue_writable(out, name, glue);
    emit_glue_end(out, name, glue);
    text_add(out, "\nstatic const struct idem_stream_glue %sglue_%s = {\n",
             side, name);
    if (glue->message)
        text_add(out, "    .message = %smessage_%s,\n", side, name);
    if (glue->writes)
        text_add(out, "    .writable = %swritable_%s,\n", side, name);
    text_add(out, "    .end = %send_%s,\n};\n", side, name);
}

/* One function of the library under a typed name. */
static void
emit_plain(struct text *out, const struct method *method, const char *returns,
           const char *verb, const char *side, const char *constant,
           const char *library)
{
    text_add(out,
             "\n%s\n%s_%s(%sstruct %s_%sstream *stream)\n{\n"
             "    %sidem_stream_%s((%sstruct idem_stream *)stream);\n}\n",
             returns, method->name, verb, constant, method->name, side,
             *returns == 'v' && returns[4] == '\0' ? "" : "return ", library,
             constant);
}

static void
emit_write(struct text *out, const struct method *method, const char *verb,
           const char *side, const struct type *type)
{
    text_add(out,
             "\nenum idem_status\n"
             "%s_%s(struct %s_%sstream *stream,\n"
             "    const %s *message)\n{\n"
             "    return idem_stream_write((struct idem_stream *)stream,\n"
             "        (const struct ProtobufCMessage *)message);\n}\n",
             method->name, verb, method->name, side, type->alias);
}

static void
emit_next(struct text *out, const struct method *method, const char *verb,
          const char *side, const struct type *type)
{
    text_add(out,
             "\nconst %s *\n"
             "%s_%s(struct %s_%sstream *stream)\n{\n"
             "    return (const %s *)idem_stream_next(\n"
             "        (struct idem_stream *)stream);\n}\n",
             type->alias, method->name, verb, method->name, side, type->alias);
}

static void
emit_begin(struct text *out, const struct method *method, bool blocking)
{
    const char *name = method->name;

    text_add(out,
             "\nstruct %s_stream *\n"
             "%s_%s(struct idem_channel *channel,\n"
             "%s"
             "    const struct idem_call_options *options",
             name, name, blocking ? "open" : "start",
             emit_stream_request(out->pool, method));
    if (!blocking)
        text_add(out, ",\n    const struct %s_callbacks *callbacks", name);
    text_add(out,
             ")\n{\n"
             "    return (struct %s_stream *)idem_stream_%s(\n"
             "        channel, &%s_method, %s, options%s);\n}\n",
             name, blocking ? "open" : "start", name,
             service_client_streams(method)
                 ? "NULL"
                 : "(const struct ProtobufCMessage *)request",
             blocking ? ""
                      : pool_printf(out->pool, ",\n        &glue_%s, callbacks",
                                    name));
}

static void
emit_finish(struct text *out, const struct method *method)
{
    const char *name = method->name;

    text_add(out,
             "\nenum idem_status\n"
             "%s_finish(struct %s_stream *stream,\n",
             name, name);
    if (service_server_streams(method)) {
        text_add(out,
                 "    struct idem_outcome *outcome)\n{\n"
                 "    return idem_stream_finish((struct idem_stream *)stream,\n"
                 "        NULL, outcome);\n}\n");
        return;
    }
    text_add(out,
             "    %s **reply,\n"
             "    struct idem_outcome *outcome)\n{\n"
             "    struct ProtobufCMessage *raw = NULL;\n"
             "    enum idem_status status = idem_stream_finish(\n"
             "        (struct idem_stream *)stream, reply ? &raw : NULL,\n"
             "        outcome);\n\n"
             "    if (reply && status == IDEM_OK)\n"
             "        *reply = (%s *)raw;\n"
             "    return status;\n}\n",
             method->output->alias, method->output->alias);
}

static void
emit_client_source(struct text *out, const struct method *method)
{
    bool reads = service_server_streams(method);
    const struct glue glue = {
        .side = "",
        .message = reads ? method->output : NULL,
        .writes = service_client_streams(method),
        .reply = reads ? NULL : method->output,
    };

    emit_glue(out, method->name, &glue);
    emit_begin(out, method, true);
    emit_begin(out, method, false);
    emit_finish(out, method);
    if (glue.writes) {
        emit_write(out, method, "write", "", method->input);
        emit_plain(out, method, "void", "end", "", "", "end");
    }
    if (reads)
        emit_next(out, method, "next", "", method->output);
    emit_plain(out, method, "void", "cancel", "", "", "cancel");
    emit_plain(out, method, "void *", "user", "", "const ", "user");
    emit_plain(out, method, "void", "resume", "", "", "resume");
    emit_plain(out, method, "void", "release", "", "", "release");
}

static void
emit_server_callback_source(struct text *out, const struct method *method)
{
    const char *name = method->name;
    const struct glue glue = {
        .side = "server_",
        .message = service_client_streams(method) ? method->input : NULL,
        .writes = service_server_streams(method),
        .status = true,
    };

    emit_glue(out, name, &glue);
    text_add(out,
             "\nvoid\n"
             "%s_serve(struct %s_server_stream *stream,\n"
             "    const struct %s_server_callbacks *callbacks, void *user)\n{\n"
             "    idem_stream_serve((struct idem_stream *)stream,\n"
             "        &server_glue_%s, callbacks, user);\n}\n"
             "\nvoid\n"
             "%s_close(struct %s_server_stream *stream,\n"
             "    enum idem_status status)\n{\n"
             "    idem_stream_close((struct idem_stream *)stream, status);\n"
             "}\n",
             name, name, name, name, name, name);
    emit_plain(out, method, "void *", "server_user", "server_", "const ",
               "user");
    emit_plain(out, method, "void", "server_resume", "server_", "", "resume");
}

static void
emit_resume_source(struct text *out, const struct method *method)
{
    const char *name = method->name;

    text_add(out,
             "\nvoid\n"
             "%s_mark(struct %s_server_stream *stream,\n"
             "    struct idem_bytes mark)\n{\n"
             "    idem_stream_mark((struct idem_stream *)stream, mark);\n}\n",
             name, name);
    emit_plain(out, method, "struct idem_bytes", "kept", "server_", "const ",
               "kept");
    emit_plain(out, method, "struct idem_bytes", "resumed_at", "server_",
               "const ", "resumed_at");
}

static void
emit_numbered_source(struct text *out, const struct method *method)
{
    const char *name = method->name;

    text_add(out,
             "\nint64_t\n"
             "%s_watermark(struct %s_stream *stream)\n{\n"
             "    return idem_stream_watermark((struct idem_stream *)stream);\n"
             "}\n"
             "\nbool\n"
             "%s_key(struct %s_stream *stream, char *text)\n{\n"
             "    return idem_stream_key((struct idem_stream *)stream, text);\n"
             "}\n",
             name, name, name, name);
}

void
emit_stream_source(struct text *out, const struct method *method)
{
    emit_client_source(out, method);
    if (service_numbers(method)) {
        emit_numbered_source(out, method);
        return;
    }
    if (service_server_streams(method))
        emit_write(out, method, "send", "server_", method->output);
    if (service_resumes(method))
        emit_resume_source(out, method);
    if (method->policy.answers_later)
        emit_server_callback_source(out, method);
    else if (service_client_streams(method))
        emit_next(out, method, "receive", "server_", method->input);
}
