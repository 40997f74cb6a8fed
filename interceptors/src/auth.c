#include <idem/auth.h>

#include "bearer_jwt.h"
#include "token_table.h"
#include "verifier.h"

#include <idem/reason.h>

#include <stdlib.h>
#include <string.h>

#define HEADER "authorization"
#define SCHEME "bearer "

struct auth {
    struct idem_interceptor base;
    struct kept_file *tokens; /* NULL: none */
    struct bearer_jwt *jwt;   /* NULL: none */
    idem_auth_fn *check;      /* NULL: none */
    void *check_with;
    struct verifier *verifier; /* NULL: no signed tokens */
};

/* --- Sources: NOT_FOUND from those that do not know the token --- */

static bool
copy(struct idem_arena *arena, struct idem_bytes *to, struct idem_bytes from)
{
    to->data = idem_arena_copy(arena, from);
    to->size = from.size;
    return to->data != NULL;
}

/* The table may be another one soon. */
static enum idem_status
copy_entry(struct idem_principal *principal, const struct token_entry *entry,
           struct idem_arena *arena, struct idem_error *err)
{
    struct idem_bytes *roles =
        idem_arena_alloc(arena, (entry->n_roles + 1) * sizeof *roles);
    bool copied = roles && copy(arena, &principal->identity, entry->identity);

    for (unsigned i = 0; copied && i < entry->n_roles; i++)
        copied = copy(arena, &roles[i], entry->roles[i]);
    if (!copied)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    principal->roles = roles;
    principal->n_roles = entry->n_roles;
    return IDEM_OK;
}

static enum idem_status
ask_tokens(const struct auth *auth, struct idem_call *call,
           struct idem_bytes token, struct idem_principal *principal,
           struct idem_error *err)
{
    const struct token_entry *entry;
    enum idem_status status = IDEM_NOT_FOUND;
    struct kept *kept;

    if (!auth->tokens)
        return status;
    kept = kept_file_hold(auth->tokens);
    entry = token_table_find(kept->meaning, token);
    if (entry)
        status = copy_entry(principal, entry, call->arena, err);
    kept_release(kept);
    return status;
}

static enum idem_status
ask_jwt(const struct auth *auth, struct idem_call *call,
        struct idem_bytes token, struct idem_principal *principal, bool *later,
        struct idem_error *err)
{
    if (!auth->jwt || !bearer_jwt_is(token))
        return IDEM_NOT_FOUND;
    return bearer_jwt_check(auth->jwt, token, call->clock->wall_ms(call->clock),
                            call->arena, principal, later, err);
}

static enum idem_status
ask(const struct auth *auth, struct idem_call *call, struct idem_bytes token,
    struct idem_principal *principal, bool *later, struct idem_error *err)
{
    enum idem_status status = ask_tokens(auth, call, token, principal, err);

    if (status == IDEM_NOT_FOUND)
        status = ask_jwt(auth, call, token, principal, later, err);
    if (status == IDEM_NOT_FOUND && auth->check)
        status = auth->check(auth->check_with, call, token, principal, err);
    if (status == IDEM_NOT_FOUND)
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_UNKNOWN,
                                "the token is nobody's here");
    if (status == IDEM_OK && principal->identity.size == 0)
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_UNKNOWN,
                                "the token says nobody's name");
    return status;
}

/* --- The header --- */

static bool
is_header(struct idem_bytes name)
{
    return idem_bytes_equal(name, idem_bytes_of(HEADER));
}

static unsigned
count_headers(const struct idem_metadata *metadata)
{
    unsigned n = 0;

    for (const struct idem_metadata_entry *at = metadata->first; at;
         at = at->next)
        n += is_header(at->name);
    return n;
}

static bool
is_token(struct idem_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i] < 0x21 || bytes.data[i] > 0x7E)
            return false;
    return bytes.size > 0 && bytes.size <= IDEM_TOKEN_MAX;
}

/* What it says is in no message: it may be a password. */
static enum idem_status
read_header(struct idem_bytes value, struct idem_bytes *token,
            struct idem_error *err)
{
    size_t size = sizeof(SCHEME) - 1;

    if (value.size < size ||
        strncasecmp((const char *)value.data, SCHEME, size) != 0)
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MALFORMED,
                                HEADER " is not \"Bearer\" and a token");
    *token = (struct idem_bytes){value.data + size, value.size - size};
    if (is_token(*token))
        return IDEM_OK;
    return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MALFORMED,
                            "the token is empty, over %d bytes or has blanks",
                            IDEM_TOKEN_MAX);
}

static enum idem_status
authenticate(const struct auth *auth, struct idem_call *call,
             struct idem_bytes value, bool *later, struct idem_error *err)
{
    struct idem_principal *principal =
        idem_arena_zalloc(call->arena, sizeof *principal);
    struct idem_bytes token = {0};
    enum idem_status status = read_header(value, &token, err);

    if (!principal)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (status == IDEM_OK)
        status = ask(auth, call, token, principal, later, err);
    if (status != IDEM_OK)
        return status;
    call->principal = principal;
    call->tenant = principal->identity;
    return IDEM_OK;
}

/* Wiped too: the call's memory is another call's soon. */
static void
forget_headers(struct idem_metadata *metadata)
{
    for (const struct idem_metadata_entry *at = metadata->first; at;
         at = at->next)
        if (is_header(at->name))
            explicit_bzero((void *)(uintptr_t)at->value.data, at->value.size);
    idem_metadata_drop(metadata, is_header);
}

/* later: as bearer_jwt_check. When that is true nothing is said yet. */
static enum idem_status
admit(const struct auth *auth, struct idem_call *call, bool *later,
      struct idem_error *err)
{
    struct idem_bytes value = {0};

    (void)idem_metadata_get(&call->metadata, HEADER, &value);
    if (count_headers(&call->metadata) > 1)
        return idem_fail_reason(err, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MALFORMED,
                                "the call has more than one token");
    return authenticate(auth, call, value, later, err);
}

static enum idem_step
decide(struct idem_call *call, enum idem_status status,
       const struct idem_error *err)
{
    forget_headers(&call->metadata);
    if (status == IDEM_OK)
        return IDEM_NEXT;
    idem_call_fail_with(call, IDEM_EFFECT_REFUSED, err);
    return IDEM_ANSWER;
}

/* On the verifier's thread. */
static enum idem_step
verify(void *with, struct idem_call *call)
{
    struct idem_error err = {0};
    enum idem_status status = admit(with, call, NULL, &err);

    return decide(call, status, &err);
}

static void
forget_call(struct idem_call *call)
{
    forget_headers(&call->metadata);
}

static enum idem_step
verify_later(const struct auth *auth, struct idem_call *call)
{
    enum idem_step step = verifier_take(auth->verifier, call);

    if (step == IDEM_ANSWER)
        forget_headers(&call->metadata);
    return step;
}

static enum idem_step
request(struct idem_interceptor *self, struct idem_call *call)
{
    const struct auth *auth = (struct auth *)self;
    struct idem_error err = {0};
    struct idem_bytes value;
    enum idem_status status;
    bool later = false;

    if (!idem_metadata_get(&call->metadata, HEADER, &value))
        return IDEM_NEXT;
    status = admit(auth, call, &later, &err);
    return later ? verify_later(auth, call) : decide(call, status, &err);
}

/* --- Its life --- */

static void
auth_free(struct idem_interceptor *self)
{
    struct auth *auth = (struct auth *)self;

    verifier_free(auth->verifier);
    kept_file_free(auth->tokens);
    bearer_jwt_free(auth->jwt);
    free(auth);
}

static const struct idem_interceptor_ops auth_ops = {
    .name = "auth",
    .band = IDEM_BAND_AUTH,
    .request = request,
    .free = auth_free,
};

static enum idem_status
open_sources(struct auth *auth, const struct idem_auth_options *options,
             struct idem_error *err)
{
    enum idem_status status = IDEM_OK;

    if (options->token_file)
        status =
            kept_file_new(&auth->tokens, options->token_file, &token_table_ops,
                          options->reloaded, options->reloaded_with, err);
    if (status == IDEM_OK && options->jwt)
        status = bearer_jwt_new(&auth->jwt, options->jwt, options->reloaded,
                                options->reloaded_with, err);
    if (status == IDEM_OK && options->jwt)
        status = verifier_new(&auth->verifier, verify, forget_call, auth, err);
    return status;
}

enum idem_status
idem_auth_new(struct idem_interceptor **out,
              const struct idem_auth_options *options, struct idem_error *err)
{
    struct auth *auth = calloc(1, sizeof *auth);
    enum idem_status status;

    if (!auth)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    auth->base.ops = &auth_ops;
    auth->check = options->check;
    auth->check_with = options->check_with;
    status = open_sources(auth, options, err);
    if (status != IDEM_OK) {
        auth_free(&auth->base);
        return status;
    }
    *out = &auth->base;
    return IDEM_OK;
}
