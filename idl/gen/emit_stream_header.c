#include "emit.h"

/* What a header declares of methods of many messages (<idem/stream.h>,
 * docs/streaming.md).
 *
 * A client's end is a struct NAME_stream, a handler's a struct
 * NAME_server_stream; neither is ever defined: they are struct idem_stream by
 * another name, so that no stream gets into the functions of another method. */

const char *
emit_stream_request(struct pool *pool, const struct method *method)
{
    return service_client_streams(method)
               ? ""
               : pool_printf(pool, "    const %s *request,\n",
                             method->input->alias);
}

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

/* What each message does, and what the end of a client stream says. */
static void
emit_numbered_slots(struct text *out, const struct method *method)
{
    bool replies = service_server_streams(method);

    text_add(out,
             "    /* For each message, once by its number, one after another.\n"
             "     * What is not OK ends the stream. */\n"
             "    enum idem_status (*%s)(struct idem_context *context,\n"
             "        const %s *message",
             method->slot, method->input->alias);
    if (replies)
        text_add(out, ",\n        %s *reply", method->output->alias);
    text_add(out, ");\n");
    if (!replies)
        text_add(
            out,
            "    /* When the client has ended its side, once, with the\n"
            "     * number behind the last message's: may write as one. */\n"
            "    enum idem_status (*%s_end)(struct idem_context *context,\n"
            "        %s *reply);\n",
            method->snake, method->output->alias);
}

void
emit_stream_slot(struct text *out, const struct method *method)
{
    if (service_resumes(method)) {
        emit_resume_slots(out, method);
        return;
    }
    if (service_numbers(method)) {
        emit_numbered_slots(out, method);
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
             name, name, name, emit_stream_request(out->pool, method), name,
             name);
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
             name, name, emit_stream_request(out->pool, method), name, name,
             name, name, name, name, name);
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

    text_add(
        out,
        "\n/* dispatch ASYNC: the handler says what runs, and returns;\n"
        " * close is the end of the call. Each may be NULL; without end it\n"
        " * is closed with that status. */\n"
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

static void
emit_numbered(struct text *out, const struct method *method)
{
    const char *name = method->name;

    text_add(out,
             "\n/* All messages up to this number took effect. And the key of\n"
             " * the one behind it, for options.key of a stream that is to go\n"
             " * on from there; false: not known yet (<idem/stream.h>). */\n"
             "int64_t %s_watermark(struct %s_stream *stream);\n"
             "bool %s_key(struct %s_stream *stream,\n"
             "    char *text) IDEM_MUST_CHECK;\n",
             name, name, name, name);
}

void
emit_stream_header(struct text *out, const struct method *method)
{
    emit_client_blocking(out, method);
    emit_client_callbacks(out, method);
    if (service_numbers(method)) {
        emit_numbered(out, method);
        return;
    }
    emit_server(out, method);
    if (method->policy.answers_later)
        emit_server_callbacks(out, method);
}
