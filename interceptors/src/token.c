#include <idem/token.h>

#include "kept_file.h"
#include "word_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "authorization"
#define SCHEME "Bearer "

struct token {
    struct idem_interceptor base;
    struct kept_file *file; /* NULL: fetch */
    idem_token_fn *fetch;
    void *fetch_with;
};

/* --- The file --- */

/* Up to the first blank or end of line; nothing may follow but those. */
static size_t
token_size(struct idem_bytes text)
{
    size_t size = 0, at;

    while (size < text.size && text.data[size] > 0x20 && text.data[size] < 0x7F)
        size++;
    for (at = size; at < text.size; at++)
        if (!strchr(" \t\r\n", text.data[at]) || text.data[at] == 0)
            return 0;
    return size <= IDEM_TOKEN_MAX ? size : 0;
}

static enum idem_status
file_read(void **meaning, const char *path, struct idem_bytes text,
          struct idem_error *err)
{
    size_t size = token_size(text);

    if (size == 0)
        return idem_fail(
            err, IDEM_INVALID_ARGUMENT,
            "%s: is not one token of at most %d bytes of printable "
            "ASCII",
            path, IDEM_TOKEN_MAX);
    *meaning = word_copy((struct idem_bytes){text.data, size});
    return IDEM_OK;
}

static void
file_free(void *meaning)
{
    explicit_bzero(meaning, strlen(meaning));
    free(meaning);
}

static const struct kept_file_ops file_ops = {
    .max_size = 2 * IDEM_TOKEN_MAX,
    .read = file_read,
    .free = file_free,
};

/* --- With each attempt --- */

static bool
is_header(struct idem_bytes name)
{
    return idem_bytes_equal(name, idem_bytes_of(HEADER));
}

static enum idem_status
get(const struct token *self, char token[IDEM_TOKEN_MAX + 1],
    struct idem_error *err)
{
    struct kept *kept;

    token[0] = 0;
    if (!self->file)
        return self->fetch(self->fetch_with, token, err);
    kept = kept_file_hold(self->file);
    snprintf(token, IDEM_TOKEN_MAX + 1, "%s", (const char *)kept->meaning);
    kept_release(kept);
    return IDEM_OK;
}

static enum idem_status
attach(const struct token *self, struct idem_call *call, struct idem_error *err)
{
    char value[sizeof(SCHEME) + IDEM_TOKEN_MAX] = SCHEME;
    char *token = value + sizeof(SCHEME) - 1;
    enum idem_status status = get(self, token, err);

    if (status == IDEM_OK && token_size(idem_bytes_of(token)) != strlen(token))
        status = idem_fail(err, IDEM_UNAUTHENTICATED,
                           "the token is empty or not printable ASCII");
    if (status == IDEM_OK)
        status =
            idem_metadata_add(&call->metadata, call->arena,
                              idem_bytes_of(HEADER), idem_bytes_of(value), err);
    explicit_bzero(value, sizeof value);
    return status;
}

/* The token of an attempt before may be over: each has its own. What the caller
 * gave is his to know; its channel has noted that it is there. */
static enum idem_step
request(struct idem_interceptor *self, struct idem_call *call)
{
    struct idem_error err = {0};
    struct idem_bytes given;

    if (idem_metadata_get(&call->metadata, HEADER, &given))
        return IDEM_NEXT;
    idem_call_set_state(call, self, self);
    call->confidential = true;
    if (attach((struct token *)self, call, &err) == IDEM_OK)
        return IDEM_NEXT;
    idem_call_fail_with(call, IDEM_EFFECT_NOT_SENT, &err);
    return IDEM_ANSWER;
}

/* The next attempt gets another. */
static enum idem_step
reply(struct idem_interceptor *self, struct idem_call *call)
{
    if (idem_call_state(call, self))
        idem_metadata_drop(&call->metadata, is_header);
    idem_call_set_state(call, self, NULL);
    return IDEM_NEXT;
}

static void
token_free(struct idem_interceptor *base)
{
    struct token *self = (struct token *)base;

    kept_file_free(self->file);
    free(self);
}

static const struct idem_interceptor_ops token_ops = {
    .name = "token",
    .band = IDEM_BAND_ATTEMPT,
    .request = request,
    .reply = reply,
    .free = token_free,
};

enum idem_status
idem_token_new(struct idem_interceptor **out,
               const struct idem_token_options *options, struct idem_error *err)
{
    struct token *self;
    enum idem_status status = IDEM_OK;

    if (!options->file == !options->fetch)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "a token comes of a file or of fetch: one of them");
    self = calloc(1, sizeof *self);
    if (!self)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    self->base.ops = &token_ops;
    self->fetch = options->fetch;
    self->fetch_with = options->fetch_with;
    if (options->file)
        status = kept_file_new(&self->file, options->file, &file_ops,
                               options->reloaded, options->reloaded_with, err);
    if (status != IDEM_OK) {
        token_free(&self->base);
        return status;
    }
    *out = &self->base;
    return IDEM_OK;
}
