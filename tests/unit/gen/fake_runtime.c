#include "fake_runtime.h"

#include <stdarg.h>
#include <stdio.h>

struct fake_runtime fake_runtime;

enum idem_status
idem_channel_call(struct idem_channel *channel,
                  const struct idem_method *method,
                  const struct ProtobufCMessage *request,
                  struct ProtobufCMessage **reply,
                  const struct idem_call_options *options,
                  struct idem_outcome *outcome)
{
    (void)channel;
    fake_runtime.method = method;
    fake_runtime.request = request;
    fake_runtime.options = options;
    if (reply && fake_runtime.answer == IDEM_OK)
        *reply = fake_runtime.reply;
    if (outcome)
        outcome->status = fake_runtime.answer;
    return fake_runtime.answer;
}

struct idem_call *
idem_channel_start(struct idem_channel *channel,
                   const struct idem_method *method,
                   const struct ProtobufCMessage *request,
                   const struct idem_call_options *options,
                   idem_call_done_fn *done, void (*author)(void))
{
    (void)channel;
    fake_runtime.method = method;
    fake_runtime.request = request;
    fake_runtime.options = options;
    fake_runtime.done = done;
    fake_runtime.author = author;
    return NULL;
}

enum idem_status
idem_channel_read_reply(const struct idem_method *method,
                        struct idem_bytes bytes,
                        struct ProtobufCMessage **reply, struct idem_error *err)
{
    (void)bytes;
    (void)err;
    fake_runtime.method = method;
    if (fake_runtime.answer == IDEM_OK)
        *reply = fake_runtime.reply;
    return fake_runtime.answer;
}

enum idem_status
idem_server_register(struct idem_server *server,
                     const struct idem_service *service, const void *handlers,
                     size_t size, void *user, struct idem_error *err)
{
    (void)server;
    (void)err;
    fake_runtime.service = service;
    fake_runtime.handlers = handlers;
    fake_runtime.size = size;
    fake_runtime.user = user;
    return fake_runtime.answer;
}

enum idem_status
idem_fail(struct idem_error *err, enum idem_status status, const char *format,
          ...)
{
    va_list args;

    (void)err;
    va_start(args, format);
    vsnprintf(fake_runtime.failure, sizeof(fake_runtime.failure), format, args);
    va_end(args);
    return status;
}

enum idem_status
idem_context_fail(struct idem_context *context, enum idem_status status,
                  const char *format, ...)
{
    va_list args;

    (void)context;
    va_start(args, format);
    vsnprintf(fake_runtime.failure, sizeof(fake_runtime.failure), format, args);
    va_end(args);
    return status;
}

void
idem_context_complete(struct idem_context *context, enum idem_status status)
{
    (void)context;
    fake_runtime.completed = status;
}

struct idem_statements *
idem_context_statements(struct idem_context *context)
{
    (void)context;
    return fake_runtime.statements;
}

const struct idem_rows *const *
idem_context_rows(struct idem_context *context)
{
    (void)context;
    return fake_runtime.rows;
}
