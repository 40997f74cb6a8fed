#ifndef EMIT_H
#define EMIT_H

#include "service.h"
#include "text.h"

/* Generated C. The .proto is free of complaints by now. */

/* "payments/v1/payments.proto" gives "payments/v1/payments" and the end. */
const char *emit_name(struct pool *pool, const char *proto, const char *end);

/* x.idem.h: names without double underscores, handler tables and stubs. */
void emit_header(struct text *out, const struct model *model,
                 const struct file *file);

/* The part of the header that is about messages and enums. */
void emit_types(struct text *out, const struct model *model,
                const struct file *file);

/* x.idem.c: glue, const policy, descriptors. */
void emit_source(struct text *out, const struct model *model,
                 const struct file *file);

/* The head of a function of the handlers' table, up to the table itself: what
 * it returns, and its verb before the method's name. */
void emit_invoke_head(struct text *out, const struct method *method,
                      const char *returns, const char *verb);

/* A method of many messages: its slot in the handlers' table, what the header
 * declares of it, what calls the slot, and what the header declared. */
void emit_stream_slot(struct text *out, const struct method *method);
/* "    const x *request,\n", of a server stream; else "". */
const char *emit_stream_request(struct pool *pool, const struct method *method);
void emit_stream_header(struct text *out, const struct method *method);
void emit_stream_invoke(struct text *out, const struct method *method);
void emit_stream_source(struct text *out, const struct method *method);

/* Who may call a method, as const data; nothing when nobody says. */
void emit_allow(struct text *out, const struct method *method);

/* The const data of a service: its methods with their policy. */
void emit_methods(struct text *out, const struct model *model,
                  const struct service *service);

/* A serialized FileDescriptorSet of the file and all that it imports, as bytes
 * of a static array. */
void emit_descriptors(struct text *out, const struct model *model,
                      const struct file *file);

#endif
