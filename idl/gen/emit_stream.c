#include "emit.h"

/* Methods of many messages: what a client and a handler get instead of a call
 * with one request and one reply (<idem/stream.h>, docs/streaming.md).
 *
 * A client's end is a struct NAME_stream, a handler's a struct
 * NAME_server_stream; neither is ever defined: they are struct idem_stream by
 * another name, so that no stream gets into the functions of another method. */

/* "const x *request,\n    ", of a server stream. */
static const char *
request_of(struct pool *pool, const struct method *method)
{
    return service_client_streams(method)
               ? ""
               : pool_printf(pool, "    const %s *request,\n",
                             method->input->alias);
}

/* --- The header --- */

/* What happens once, and what is read of it afterwards. */
static void
emit_resume_slots(struct text *out, const struct method *method)
{
    text_add(out,
             "    /* First: the effect, once. What it keeps with\n"
             "     * idem_context_keep() is recorded with it. */\n"
             "    enum idem_status (*%s)(struct idem_context *context,\n"
             "        const %s *request);\n",
             method->slot, method->input->alias);
    text_add(
        out,
        "    /* Then: the messages, from idem_stream_resumed_at() on. Reads\n"
        "     * only: it runs again after each loss. */\n"
        "    enum idem_status (*%s_messages)(\n"
        "        struct idem_context *context,\n"
        "        const %s *request,\n"
        "        struct %s_server_stream *stream);\n",
        method->snake, method->input->alias, method->name);
}

void
emit_stream_slot(struct text *out, const struct method *method)
{
    if (service_resumes(method)) {
        emit_resume_slots(out, method);
        return;
    }
    text_add(out, "    enum idem_status (*%s)(struct idem_context *context,\n",
             method->slot);
    if (!service_client_streams(method))
        text_add(out, "        const %s *request,\n", method->input->alias);
    text_add(out, "        struct %s_server_stream *stream", method->name);
    if (!service_server_streams(method))
        text_add(out, ",\n        %s *reply", method->output->alias);
    text_add(out, ");\n");
}

static void
emit_client_blocking(struct text *out, const struct method *method)
{
    const char *name = method->name;

    text_add(out,
             "\n/* Begin it, and end it: finish waits for the server's end,\n"
             " * throws away what is unread and frees the stream; to leave\n"
             " * early, cancel first. What goes wrong is told there. */\n"
             "struct %s_stream;\n"
             "struct %s_stream *%s_open(struct idem_channel *channel,\n"
             "%s"
             "    const struct idem_call_options *options);\n"
             "enum idem_status %s_finish(struct %s_stream *stream,\n",
             name, name, name, request_of(out->pool, method), name, name);
    if (!service_server_streams(method))
        text_add(out, "    %s **reply,\n", method->output->alias);
    text_add(out,
             "    struct idem_outcome *outcome);\n"
             "void %s_cancel(struct %s_stream *stream);\n",
             name, name);
    if (service_client_streams(method))
        text_add(
            out,
            "\n/* Write the next message, waiting for room; end: there is\n"
            " * none any more. */\n"
            "enum idem_status %s_write(struct %s_stream *stream,\n"
            "    const %s *message) IDEM_MUST_CHECK;\n"
            "void %s_end(struct %s_stream *stream);\n",
            name, name, method->input->alias, name, name);
    if (service_server_streams(method))
        text_add(
            out,
            "\n/* The next message, which lives until the next call; NULL:\n"
            " * there is none any more. */\n"
            "const %s *%s_next(struct %s_stream *stream);\n",
            method->output->alias, name, name);
}

static void
emit_client_callbacks(struct text *out, const struct method *method)
{
    const char *name = method->name;

    text_add(out,
             "\n/* The same in callback style; <idem/stream.h> says when each\n"
             " * runs. Each may be NULL. Release drops the handle. */\n"
             "struct %s_callbacks {\n",
             name);
    if (service_server_streams(method))
        text_add(out,
                 "    bool (*message)(struct %s_stream *stream,\n"
                 "        const %s *message);\n",
                 name, method->output->alias);
    if (service_client_streams(method))
        text_add(out, "    void (*writable)(struct %s_stream *stream);\n",
                 name);
    text_add(out, "    void (*end)(struct %s_stream *stream,\n", name);
    if (!service_server_streams(method))
        text_add(out, "        const %s *reply,\n", method->output->alias);
    text_add(out,
             "        const struct idem_outcome *outcome);\n"
             "};\n"
             "struct %s_stream *%s_start(struct idem_channel *channel,\n"
             "%s"
             "    const struct idem_call_options *options,\n"
             "    const struct %s_callbacks *callbacks);\n"
             "void *%s_user(const struct %s_stream *stream);\n"
             "void %s_resume(struct %s_stream *stream);\n"
             "void %s_release(struct %s_stream *stream);\n",
             name, name, request_of(out->pool, method), name, name, name, name,
             name, name, name);
}

static void
emit_server(struct text *out, const struct method *method)
{
    const char *name = method->name;

    text_add(out, "\n/* What its handler does with its end. */\n");
    if (service_server_streams(method))
        text_add(out,
                 "enum idem_status %s_send(struct %s_server_stream *stream,\n"
                 "    const %s *message) IDEM_MUST_CHECK;\n",
                 name, name, method->output->alias);
    if (service_resumes(method))
        text_add(out,
                 "void %s_mark(struct %s_server_stream *stream,\n"
                 "    struct idem_bytes mark);\n"
                 "struct idem_bytes %s_kept(\n"
                 "    const struct %s_server_stream *stream);\n"
                 "struct idem_bytes %s_resumed_at(\n"
                 "    const struct %s_server_stream *stream);\n",
                 name, name, name, name, name, name);
    if (service_client_streams(method) && !method->policy.answers_later)
        text_add(out,
                 "const %s *%s_receive(\n"
                 "    struct %s_server_stream *stream);\n",
                 method->input->alias, name, name);
}

static void
emit_server_callbacks(struct text *out, const struct method *method)
{
    const char *name = method->name;

    text_add(out,
             "\n/* dispatch ASYNC: the handler says what runs, and returns;\n"
             " * close is the end of the call. */\n"
             "struct %s_server_callbacks {\n",
             name);
    if (service_client_streams(method))
        text_add(out,
                 "    bool (*message)(struct %s_server_stream *stream,\n"
                 "        const %s *message);\n",
                 name, method->input->alias);
    if (service_server_streams(method))
        text_add(out,
                 "    void (*writable)(struct %s_server_stream *stream);\n",
                 name);
    text_add(out,
             "    void (*end)(struct %s_server_stream *stream,\n"
             "        enum idem_status status);\n"
             "};\n"
             "void %s_serve(struct %s_server_stream *stream,\n"
             "    const struct %s_server_callbacks *callbacks, void *user);\n"
             "void %s_close(struct %s_server_stream *stream,\n"
             "    enum idem_status status);\n"
             "void *%s_server_user(const struct %s_server_stream *stream);\n"
             "void %s_server_resume(struct %s_server_stream *stream);\n",
             name, name, name, name, name, name, name, name, name, name);
}

void
emit_stream_header(struct text *out, const struct method *method)
{
    emit_client_blocking(out, method);
    emit_client_callbacks(out, method);
    emit_server(out, method);
    if (method->policy.answers_later)
        emit_server_callbacks(out, method);
}

/* --- The source --- */

static void
emit_resume_invokes(struct text *out, const struct method *method)
{
    const char *service = method->service->name;

    text_add(out,
             "\nstatic enum idem_status\n"
             "invoke_%s(const void *handlers,\n"
             "    struct idem_context *context,\n"
             "    const struct ProtobufCMessage *request,\n"
             "    struct ProtobufCMessage *reply)\n{\n"
             "    const struct %s_handlers *table = handlers;\n\n"
             "    (void)reply;\n",
             method->name, service);
    text_add(out,
             "    if (!table->%s || !table->%s_messages)\n"
             "        return idem_context_fail(context, IDEM_UNIMPLEMENTED,\n"
             "            \"%%s has no handler\", %s_METHOD);\n"
             "    return table->%s(context, (const %s *)request);\n}\n",
             method->slot, method->snake, method->shout, method->slot,
             method->input->alias);
    text_add(out,
             "\nstatic enum idem_status\n"
             "messages_%s(const void *handlers,\n"
             "    struct idem_context *context,\n"
             "    const struct ProtobufCMessage *request,\n"
             "    struct ProtobufCMessage *reply)\n{\n"
             "    const struct %s_handlers *table = handlers;\n\n"
             "    (void)reply;\n"
             "    return table->%s_messages(context,\n"
             "        (const %s *)request,\n"
             "        (struct %s_server_stream *)\n"
             "            idem_context_stream(context));\n}\n",
             method->name, service, method->snake, method->input->alias,
             method->name);
}

void
emit_stream_invoke(struct text *out, const struct method *method)
{
    if (service_resumes(method)) {
        emit_resume_invokes(out, method);
        return;
    }
    text_add(out,
             "\nstatic enum idem_status\n"
             "invoke_%s(const void *handlers,\n"
             "    struct idem_context *context,\n"
             "    const struct ProtobufCMessage *request,\n"
             "    struct ProtobufCMessage *reply)\n{\n"
             "    const struct %s_handlers *table = handlers;\n\n",
             method->name, method->service->name);
    text_add(out,
             "    if (!table->%s)\n"
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
    text_add(out, " %s);\n}\n", glue->status ? "outcome->status" : "outcome");
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
             request_of(out->pool, method));
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

void
emit_stream_source(struct text *out, const struct method *method)
{
    emit_client_source(out, method);
    if (service_server_streams(method))
        emit_write(out, method, "send", "server_", method->output);
    if (service_resumes(method))
        emit_resume_source(out, method);
    if (method->policy.answers_later)
        emit_server_callback_source(out, method);
    else if (service_client_streams(method))
        emit_next(out, method, "receive", "server_", method->input);
}
