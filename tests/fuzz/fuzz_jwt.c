#include "fuzz.h"

#include "bearer_jwt_keys.h"
#include "bearer_jwt_text.h"

#include <string.h>

/* A signed token's text, and a JWK set. Bytes that decode have one spelling;
 * the parts of a token are the token; a key that is taken has what it signs
 * with. */

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void
check_spelling(struct idem_bytes text, struct idem_arena *arena)
{
    struct idem_bytes bytes;
    unsigned bits = 0, held = 0;
    size_t at = 0;

    if (!bearer_decode(&bytes, text, arena))
        return;
    for (size_t i = 0; i < text.size; i++) {
        if (held < 6) {
            bits = bits << 8 | (at < bytes.size ? bytes.data[at++] : 0);
            held += 8;
        }
        held -= 6;
        IDEM_ASSERT(text.data[i] == letters[bits >> held & 63]);
    }
    IDEM_ASSERT(at == bytes.size);
}

static void
check_claims(const struct bearer_claims *claims)
{
    IDEM_ASSERT(claims->n_audiences <= BEARER_AUDIENCES_MAX);
    IDEM_ASSERT(claims->n_roles <= IDEM_ROLES_MAX);
    for (unsigned i = 0; i < claims->n_roles; i++)
        IDEM_ASSERT(claims->roles[i].data);
}

static void
try_token(struct idem_bytes token, struct idem_arena *arena)
{
    struct bearer_parts parts;
    struct bearer_header header;
    struct bearer_claims claims;
    struct idem_error err = {0};

    check_spelling(token, arena);
    if (!bearer_split(token, &parts))
        return;
    IDEM_ASSERT(parts.header.size + parts.claims.size + parts.signature.size +
                    2 ==
                token.size);
    IDEM_ASSERT(parts.signed_text.size + 1 + parts.signature.size ==
                token.size);
    if (bearer_header_read(&header, parts.header, arena, &err) != IDEM_OK)
        IDEM_ASSERT(err.status == IDEM_UNAUTHENTICATED && err.reason[0]);
    if (bearer_claims_read(&claims, parts.claims, "roles", arena, &err) ==
        IDEM_OK)
        check_claims(&claims);
}

static void
try_set(struct idem_bytes text)
{
    struct idem_error err = {0};
    const struct bearer_keys *keys;
    void *meaning;

    if (bearer_keys_ops.read(&meaning, "FILE", text, &err) != IDEM_OK) {
        IDEM_ASSERT(strncmp(err.message, "FILE: ", 6) == 0);
        return;
    }
    keys = meaning;
    IDEM_ASSERT(keys->n > 0);
    for (unsigned i = 0; i < keys->n; i++)
        IDEM_ASSERT(keys->at[i].algorithm && keys->at[i].size > 0);
    bearer_keys_ops.free(meaning);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    struct idem_arena *arena;

    if (fuzz_take_byte(&input) % 2 == 1) {
        try_set(input);
        return 0;
    }
    arena = idem_arena_new();
    IDEM_ASSERT(arena);
    if (input.size <= IDEM_TOKEN_MAX)
        try_token(input, arena);
    idem_arena_free(arena);
    return 0;
}
