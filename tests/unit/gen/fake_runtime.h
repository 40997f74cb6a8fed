#ifndef FAKE_RUNTIME_H
#define FAKE_RUNTIME_H

#include <idem/channel.h>
#include <idem/context.h>
#include <idem/server.h>
#include <idem/statement.h>

/* What the stubs call, without a network: it notes what it was given and
 * answers what the test says. */
struct fake_runtime {
    const struct idem_method *method;
    const struct ProtobufCMessage *request;
    const struct idem_call_options *options;
    struct ProtobufCMessage *reply; /* handed out on OK */
    enum idem_status answer;
    idem_call_done_fn *done;
    void (*author)(void);

    const struct idem_service *service;
    const void *handlers;
    size_t size;
    void *user;
    char failure[IDEM_MESSAGE_MAX];
    enum idem_status completed;          /* by idem_context_complete */
    struct idem_statements *statements;  /* the call's … */
    const struct idem_rows *const *rows; /* … and what came of them */
};

#ifdef __cplusplus
extern "C" {
#endif

extern struct fake_runtime fake_runtime;

#ifdef __cplusplus
}
#endif

#endif
