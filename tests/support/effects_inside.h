#ifndef EFFECTS_INSIDE_H
#define EFFECTS_INSIDE_H

#include "effects.h"

/* What the handlers of effects.proto share. */

/* A row under the call's key, and its number. */
enum idem_status effects_row(struct idem_context *context, int64_t amount,
                             int64_t *number);

/* As long as the request says. */
void effects_take_time(const effects_add_request *request);

/* effects_streams.c */
enum idem_status effects_on_each(struct idem_context *context,
                                 const effects_add_request *request);
enum idem_status effects_on_each_end(struct idem_context *context,
                                     effects_add_reply *receipt);
enum idem_status effects_on_followed(struct idem_context *context,
                                     const effects_add_request *request);
enum idem_status
effects_on_followed_messages(struct idem_context *context,
                             const effects_add_request *request,
                             struct effects_add_followed_server_stream *stream);

#endif
