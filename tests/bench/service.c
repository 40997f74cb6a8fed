#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idem/tx.h>

#include "gate.h"
#include "side.h"
#include "talks.h"

static enum idem_status
answer(struct idem_context *context, const bench_request *request,
       bench_reply *reply)
{
    size_t size =
        request->reply_bytes ? request->reply_bytes : request->body.len;

    if (size == request->body.len) {
        reply->body = request->body;
        return IDEM_OK;
    }
    reply->body.data = idem_context_alloc(context, size);
    reply->body.len = size;
    return IDEM_OK;
}

/* As the peers of rpc_bench do: no call without its token. */
static enum idem_status
echo(struct idem_context *context, const bench_request *request,
     bench_reply *reply)
{
    struct idem_bytes token;

    if (!idem_metadata_get(idem_context_metadata(context), SIDE_TOKEN_NAME,
                           &token) ||
        token.size != strlen(SIDE_TOKEN))
        return idem_context_fail(context, IDEM_UNAUTHENTICATED, "no token");
    return answer(context, request, reply);
}

static const char insert_sql[] =
    "INSERT INTO bench_business (key, amount) VALUES ($1, $2)";

static enum idem_status
transact(struct idem_context *context, const bench_request *request,
         bench_reply *reply)
{
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);

    if (!tx || idem_sql(tx, NULL, &err, insert_sql,
                        IDEM_VALUES(idem_text(idem_context_key(context)),
                                    idem_int(1))) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    return answer(context, request, reply);
}

static enum idem_status
slow(struct idem_context *context, const bench_request *request,
     bench_reply *reply)
{
    enum idem_status status = transact(context, request, reply);

    gate_stay();
    return status;
}

static enum idem_status
state_statements(struct idem_context *context, const bench_request *request,
                 struct idem_statements *statements)
{
    (void)request;
    idem_statement_add(
        statements, insert_sql,
        IDEM_VALUES(idem_text(idem_context_key(context)), idem_int(1)));
    return IDEM_OK;
}

static enum idem_status
foretell_statements(struct idem_context *context, const bench_request *request,
                    struct idem_statements *statements)
{
    idem_statements_reply_first(statements);
    return state_statements(context, request, statements);
}

static enum idem_status
state_reply(struct idem_context *context, const bench_request *request,
            const struct idem_rows *const *rows, bench_reply *reply)
{
    (void)rows;
    return answer(context, request, reply);
}

static const struct bench_handlers handlers = {
    .echo = echo,
    .echo_inline = echo,
    .talk = talks_serve,
    .watch = talks_watch,
    .lease = answer,
    .popular = answer,
    .transact = transact,
    .slow = slow,
    .group = transact,
    .state_statements = state_statements,
    .state_reply = state_reply,
    .foretell_statements = foretell_statements,
    .foretell_reply = state_reply,
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status == IDEM_OK)
        return;
    fprintf(stderr, "bench: %s: %s\n", idem_status_name(status), err->message);
    exit(1);
}

struct idem_server *
bench_serve(struct idem_store *store, const struct idem_once_options *once,
            const struct idem_tls_options *tls, const char *listen)
{
    const struct idem_server_options options = {.tls = tls};
    struct idem_server *server = NULL;
    struct idem_error err;

    must(idem_server_open(&server, store, &options, once, &err), &err);
    must(bench_register(server, &handlers, NULL, &err), &err);
    must(idem_server_listen(server, listen, &err), &err);
    must(idem_server_start(server, &err), &err);
    return server;
}

struct idem_channel *
bench_open(const struct idem_server *server)
{
    struct idem_channel *channel = NULL;
    struct idem_error err;

    must(idem_client_open(&channel, idem_server_address(server, 0), NULL, &err),
         &err);
    return channel;
}
